// What the fuzzers share: input as a file, in memory, for what reads files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace patternd::fuzz {

// Writes the input to FOLDER/name, FOLDER being this process's own, in memory where /dev/shm is
// there. Returns the path.
std::string as_file(const std::uint8_t* data, std::size_t size, const std::string& name);

// The folder itself.
const std::string& folder();

// Ends the process where a message is what no message may be: empty, or not UTF-8.
void check_message(const std::string& message);

}  // namespace patternd::fuzz
