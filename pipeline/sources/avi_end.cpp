#include "pipeline/sources/avi_end.h"

#include <array>
#include <cctype>
#include <limits>
#include <optional>
#include <string_view>

#include "pipeline/input_file.h"

namespace patternd {
namespace {

constexpr std::size_t kHeadBytes = 8;   // name and size
constexpr std::size_t kListBytes = 12;  // and what kind of list it is
// Of what lies beside frames; a file that seems to have more is none.
constexpr int kMostParts = 100'000;

struct Part {
  std::array<char, kListBytes> head{};
  std::uint64_t at = 0;
  std::size_t got = 0;  // bytes of the head that are there

  [[nodiscard]] std::string_view name() const { return {head.data(), 4}; }
  [[nodiscard]] std::string_view list() const { return {head.data() + kHeadBytes, 4}; }
  [[nodiscard]] std::uint64_t size() const {
    std::uint64_t value = 0;
    for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(head[4 + i]);
    return value;
  }
  [[nodiscard]] std::uint64_t end() const { return at + kHeadBytes + size(); }
  [[nodiscard]] std::uint64_t next() const { return end() + size() % 2; }
  [[nodiscard]] bool is_list() const { return name() == "LIST" || name() == "RIFF"; }
  [[nodiscard]] bool is_frames() const { return name() == "LIST" && list() == "movi"; }
  // Where its size has not been filled in: as a recorder that is killed leaves it.
  [[nodiscard]] bool has_no_size() const {
    return size() <= 4 || size() == std::numeric_limits<std::uint32_t>::max();
  }
  // "00dc", "01wb", "ix00": what a list of frames holds, beside lists and junk.
  [[nodiscard]] bool is_in_frames() const {
    const auto digit = [this](std::size_t i) {
      return std::isdigit(static_cast<unsigned char>(head[i])) != 0;
    };
    return (digit(0) && digit(1)) || (name().substr(0, 2) == "ix" && digit(2)) ||
           name() == "JUNK" || (name() == "LIST" && list() == "rec ");
  }
};

// Nothing where the file ends before the part's name and size do.
Result<std::optional<Part>> part_at(const InputFile& file, std::uint64_t at) {
  Part part;
  part.at = at;
  const auto got = file.read_at(at, part.head.data(), part.head.size());
  if (!got) return tl::make_unexpected(got.error());
  part.got = *got;
  if (part.got < kHeadBytes || (part.is_list() && part.got < kListBytes)) return std::nullopt;
  return part;
}

// Follows a list of frames without a size, part by part: finished where its index comes behind.
Result<AviEnd> find_end_without_size(const InputFile& file, std::uint64_t at) {
  for (;;) {
    const auto part = part_at(file, at);
    if (!part) return tl::make_unexpected(part.error());
    if (*part && (*part)->name() == "idx1") return AviEnd{AviEnd::Kind::kWhole, 0};
    if (!*part || !(*part)->is_in_frames()) return AviEnd{AviEnd::Kind::kUnfinished, 0};
    at = (*part)->next();
  }
}

}  // namespace

Result<AviEnd> find_avi_end(const std::string& path) {
  const auto file = InputFile::open(path);
  if (!file) return tl::make_unexpected(file.error());
  const auto first = part_at(*file, 0);
  if (!first) return tl::make_unexpected(first.error());
  if (!*first || (*first)->name() != "RIFF" || (*first)->list() != "AVI ") return AviEnd{};
  AviEnd end;
  std::uint64_t at = kListBytes;
  for (int i = 0; i < kMostParts; ++i) {
    const auto next = part_at(*file, at);
    if (!next) return tl::make_unexpected(next.error());
    if (!*next) return end;
    const Part& part = **next;
    if (part.is_frames()) {
      if (part.has_no_size()) return find_end_without_size(*file, at + kListBytes);
      if (part.end() > file->size_bytes())
        return AviEnd{AviEnd::Kind::kCut, part.end() - file->size_bytes()};
      end.kind = AviEnd::Kind::kWhole;
    }
    at = part.name() == "RIFF" ? at + kListBytes : part.next();
  }
  return AviEnd{};
}

}  // namespace patternd
