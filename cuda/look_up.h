// Functions of libraries that are opened at run time.
#pragma once

#include <cstring>
#include <dlfcn.h>

namespace patternd::cuda {

// Finds `symbol` in `library`, as dlopen gave it; false where it has none. (ISO C++ has no cast
// between its address and a function's.)
template <class Function>
[[nodiscard]] bool look_up(void* library, const char* symbol, Function& function) {
  void* const address = dlsym(library, symbol);
  static_assert(sizeof address == sizeof function);
  std::memcpy(&function, &address, sizeof address);
  return address != nullptr;
}

}  // namespace patternd::cuda
