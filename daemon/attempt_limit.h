// Holds back addresses from which one failed attempt comes after another: wrong tokens, handshakes
// that fail.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "daemon/network.h"

namespace patternd {

// Ten failures are free, then one a second is; who goes on faster is not heard. An IPv6 host has a
// whole /64 to itself, which counts as one. Bounded memory: where 256 addresses fail at once, the
// one whose last failure is oldest is forgotten. Used by one thread.
class AttemptLimit {
 public:
  static constexpr int kFree = 10;
  static constexpr std::int64_t kRecoveryNs = 1'000'000'000;

  [[nodiscard]] bool allows(const IpAddress& address, std::int64_t now_ns) const;
  void failed(const IpAddress& address, std::int64_t now_ns);

 private:
  struct Entry {
    IpAddress address;
    std::int64_t full_at_ns = 0;  // when all of its failures are forgiven
    bool used = false;
  };
  [[nodiscard]] const Entry* find(const IpAddress& key) const;

  std::array<Entry, 256> entries_{};
};

}  // namespace patternd
