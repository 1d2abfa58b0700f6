#include "daemon/attempt_limit.h"

#include <algorithm>

namespace patternd {
namespace {

IpAddress key_of(IpAddress address) {
  if (!is_v4(address)) std::fill(address.bytes.begin() + 8, address.bytes.end(), std::uint8_t{0});
  return address;
}

}  // namespace

const AttemptLimit::Entry* AttemptLimit::find(const IpAddress& key) const {
  const auto is_it = [&key](const Entry& entry) { return entry.used && entry.address == key; };
  const auto found = std::find_if(entries_.begin(), entries_.end(), is_it);
  return found == entries_.end() ? nullptr : &*found;
}

bool AttemptLimit::allows(const IpAddress& address, std::int64_t now_ns) const {
  const Entry* entry = find(key_of(address));
  return entry == nullptr || entry->full_at_ns - now_ns <= (kFree - 1) * kRecoveryNs;
}

void AttemptLimit::failed(const IpAddress& address, std::int64_t now_ns) {
  const IpAddress key = key_of(address);
  const Entry* known = find(key);
  // (An unused entry is the oldest of all.)
  Entry& entry = known != nullptr ? entries_[static_cast<std::size_t>(known - entries_.data())]
                                  : *std::min_element(entries_.begin(), entries_.end(),
                                                      [](const Entry& a, const Entry& b) {
                                                        return a.full_at_ns < b.full_at_ns;
                                                      });
  const std::int64_t from_ns = known != nullptr ? std::max(entry.full_at_ns, now_ns) : now_ns;
  entry = {key, from_ns + kRecoveryNs, true};
}

}  // namespace patternd
