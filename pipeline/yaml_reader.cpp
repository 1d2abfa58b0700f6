#include "pipeline/yaml_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "pipeline/decimal_number.h"
#include "pipeline/input_file.h"
#include "pipeline/utf8.h"
#include "pipeline/yaml_document.h"

namespace patternd {
namespace {

using yaml_detail::Entry;
using yaml_detail::Fault;
using yaml_detail::join_path;
using yaml_detail::Kind;
using yaml_detail::Place;
using yaml_detail::Tree;

constexpr std::size_t kMostFaultsShown = 100;

// The faults by their place, those of one place as they were found, each text at a place once: a
// key that was asked for twice says what is wrong once.
std::vector<const Fault*> in_reading_order(const std::vector<Fault>& faults) {
  std::vector<const Fault*> ordered;
  std::set<std::pair<Place, std::string_view>> said;
  for (const Fault& fault : faults)
    if (said.emplace(fault.place, fault.text).second) ordered.push_back(&fault);
  std::sort(ordered.begin(), ordered.end(), [](const Fault* a, const Fault* b) {
    return a->place == b->place ? std::less<>()(a, b) : a->place < b->place;
  });
  return ordered;
}

std::string shown_number(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end.ptr);
}

// "a number from 0 to 1", "a whole number of at least 1".
template <class T>
std::string shown_range(const std::string& what, T low, T high, std::string (*show)(T)) {
  const bool open_low = low <= std::numeric_limits<T>::lowest();
  const bool open_high = high >= std::numeric_limits<T>::max();
  if (open_low && open_high) return what;
  if (open_high) return what + " of at least " + show(low);
  if (open_low) return what + " of at most " + show(high);
  return what + " from " + show(low) + " to " + show(high);
}

std::string shown_integer(std::int64_t value) { return std::to_string(value); }

}  // namespace

struct YamlReader::Impl : yaml_detail::Document {
  void add_unknown_keys(const Tree& tree, const std::string& path) const;
};

void YamlReader::Impl::add_unknown_keys(const Tree& tree, const std::string& path) const {
  for (std::size_t i = 0; i < tree.items.size(); ++i)
    add_unknown_keys(tree.items[i], path + "[" + std::to_string(i) + "]");
  for (const Entry& entry : tree.entries) {
    const std::string entry_path = join_path(path, entry.key);
    const bool known =
        std::find(tree.known.begin(), tree.known.end(), entry.key) != tree.known.end();
    if (known) {
      add_unknown_keys(entry.value, entry_path);
    } else if (tree.asked) {
      const std::string nearest = nearest_word(entry.key, tree.known);
      add(entry.place, entry_path,
          nearest.empty() ? "unknown key; config/README.md lists those that there are"
                          : "unknown key; did you mean " + nearest + "?");
    }
  }
}

struct YamlNode::Impl {
  const YamlReader::Impl* reader = nullptr;
  const Tree* tree = nullptr;  // null: absent
  Place place;                 // of the node, or of its nearest present parent
  std::string path;

  [[nodiscard]] YamlNode child(const Tree* child_tree, std::string child_path) const {
    auto impl = std::make_shared<Impl>();
    impl->reader = reader;
    impl->tree = child_tree;
    impl->place = child_tree != nullptr ? child_tree->place : place;
    impl->path = std::move(child_path);
    return YamlNode(std::move(impl));
  }
  void add(const std::string& wrong, const std::string& accepted) const {
    reader->add(place, path, accepted.empty() ? wrong : wrong + "; " + accepted);
  }
  // The node as a map, or null; a fault where it is something else.
  [[nodiscard]] const Tree* map() const { return of_kind(Kind::kMap, "must be a map of keys"); }
  [[nodiscard]] const Tree* of_kind(Kind kind, const std::string& accepted) const {
    if (tree == nullptr || tree->kind == Kind::kFaulty) return nullptr;
    if (tree->kind == kind) return tree;
    add(kind_in_words(*tree), accepted);
    return nullptr;
  }
  // The scalar where it is one without quotes (numbers and booleans); a fault otherwise.
  [[nodiscard]] const Tree* plain_scalar(const std::string& accepted) const {
    const Tree* scalar = of_kind(Kind::kScalar, accepted);
    if (scalar == nullptr || scalar->plain) return scalar;
    add("is the text " + in_quotes(scalar->value), accepted + " (without quotes)");
    return nullptr;
  }
  template <class T>
  [[nodiscard]] std::optional<T> number(T low, T high, const std::string& accepted) const {
    const Tree* scalar = plain_scalar(accepted);
    if (scalar == nullptr) return std::nullopt;
    T value{};
    const NumberFault fault = read_decimal(scalar->value, value);
    if (fault == NumberFault::kNone && value >= low && value <= high) return value;
    const bool bare = fault != NumberFault::kNotANumber && scalar->value.size() <= 60;
    add("is " + (bare ? scalar->value : in_quotes(scalar->value)), accepted);
    return std::nullopt;
  }
  [[nodiscard]] std::optional<double> real(double low, double high) const {
    return number<double>(low, high, "must be " + shown_range("a number", low, high, shown_number));
  }
};

bool YamlNode::present() const { return impl_->tree != nullptr; }
bool YamlNode::is_map() const { return present() && impl_->tree->kind == Kind::kMap; }
bool YamlNode::is_empty_map() const { return is_map() && impl_->tree->entries.empty(); }
bool YamlNode::is_sequence() const { return present() && impl_->tree->kind == Kind::kSequence; }
bool YamlNode::is_scalar() const { return present() && impl_->tree->kind == Kind::kScalar; }
std::string YamlNode::path() const { return impl_->path; }

std::string YamlNode::place() const { return impl_->reader->at(impl_->place) + impl_->path; }

YamlNode YamlNode::operator[](std::string_view key) const {
  const std::string path = join_path(impl_->path, key);
  const Tree* map = impl_->map();
  if (map == nullptr) return impl_->child(nullptr, path);
  map->asked = true;
  if (std::find(map->known.begin(), map->known.end(), key) == map->known.end())
    map->known.emplace_back(key);
  for (const Entry& entry : map->entries) {
    if (entry.key == key) return impl_->child(&entry.value, path);
  }
  return impl_->child(nullptr, path);
}

YamlNode YamlNode::required(std::string_view key, std::string_view what) const {
  YamlNode node = (*this)[key];
  if (!node.present() && is_map()) node.impl_->add("missing", std::string(what));
  return node;
}

std::vector<std::pair<std::string, YamlNode>> YamlNode::entries() const {
  std::vector<std::pair<std::string, YamlNode>> all;
  const Tree* map = impl_->map();
  if (map == nullptr) return all;
  map->asked = true;
  for (const Entry& entry : map->entries) {
    map->known.push_back(entry.key);
    all.emplace_back(entry.key, impl_->child(&entry.value, join_path(impl_->path, entry.key)));
  }
  return all;
}

std::size_t YamlNode::size() const {
  const Tree* sequence = impl_->of_kind(Kind::kSequence, "must be a list");
  return sequence == nullptr ? 0 : sequence->items.size();
}

YamlNode YamlNode::item(std::size_t index) const {
  const bool there = is_sequence() && index < impl_->tree->items.size();
  return impl_->child(there ? &impl_->tree->items[index] : nullptr,
                      impl_->path + "[" + std::to_string(index) + "]");
}

double YamlNode::number(double fallback, double low, double high) const {
  return impl_->real(low, high).value_or(fallback);
}

std::int64_t YamlNode::integer(std::int64_t fallback, std::int64_t low, std::int64_t high) const {
  const std::string accepted =
      "must be " + shown_range("a whole number", low, high, shown_integer) + " in decimal digits";
  return impl_->number<std::int64_t>(low, high, accepted).value_or(fallback);
}

bool YamlNode::boolean(bool fallback) const {
  const Tree* scalar = impl_->plain_scalar("must be true or false");
  if (scalar == nullptr) return fallback;
  if (scalar->value == "true") return true;
  if (scalar->value == "false") return false;
  impl_->add("is " + in_quotes(scalar->value), "must be true or false");
  return fallback;
}

std::string YamlNode::text(std::string_view fallback) const {
  const Tree* scalar = impl_->of_kind(Kind::kScalar, "must be text");
  return scalar == nullptr ? std::string(fallback) : scalar->value;
}

std::size_t YamlNode::choice(std::size_t fallback,
                             const std::vector<std::string_view>& words) const {
  std::string accepted = "must be ";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) accepted += i + 1 == words.size() ? " or " : ", ";
    accepted += words[i];
  }
  const Tree* scalar = impl_->of_kind(Kind::kScalar, accepted);
  if (scalar == nullptr) return fallback;
  const auto found = std::find(words.begin(), words.end(), scalar->value);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  impl_->add("is " + in_quotes(scalar->value), accepted);
  return fallback;
}

std::optional<std::vector<double>> YamlNode::numbers(std::size_t count, double low,
                                                     double high) const {
  const std::string accepted = "must be a list of " + std::to_string(count) + " numbers";
  const Tree* sequence = impl_->of_kind(Kind::kSequence, accepted);
  if (sequence == nullptr) return std::nullopt;
  if (sequence->items.size() != count) {
    impl_->add("is a list of " + std::to_string(sequence->items.size()), accepted);
    return std::nullopt;
  }
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) {
    if (const auto value = item(i).impl_->real(low, high)) values.push_back(*value);
  }
  if (values.size() != count) return std::nullopt;
  return values;
}

void YamlNode::fault(const std::string& wrong, const std::string& accepted) const {
  impl_->add(wrong, accepted);
}

YamlReader::YamlReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
YamlReader::YamlReader(YamlReader&&) noexcept = default;
YamlReader& YamlReader::operator=(YamlReader&&) noexcept = default;
YamlReader::~YamlReader() = default;

Result<YamlReader> YamlReader::load(const std::string& path) {
  const auto content = read_file(path, yaml_detail::kMostBytes);
  if (!content) return tl::make_unexpected(content.error());
  return parse(std::string(content->begin(), content->end()), path);
}

Result<YamlReader> YamlReader::parse(const std::string& text, const std::string& name) {
  auto document = yaml_detail::parse_document(text, name);
  if (!document) return tl::make_unexpected(document.error());
  auto impl = std::make_unique<Impl>();
  static_cast<yaml_detail::Document&>(*impl) = std::move(*document);
  return YamlReader(std::move(impl));
}

YamlNode YamlReader::root() const {
  auto node = std::make_shared<YamlNode::Impl>();
  node->reader = impl_.get();
  node->tree = &impl_->root;
  node->place = impl_->root.place;
  return YamlNode(std::move(node));
}

Result<void> YamlReader::finish() const {
  // Unknown keys are added to a copy: who goes on reading makes more keys known.
  std::vector<Fault> faults = impl_->faults;
  impl_->add_unknown_keys(impl_->root, "");
  std::swap(faults, impl_->faults);
  if (faults.empty()) return {};
  const std::vector<const Fault*> ordered = in_reading_order(faults);
  std::string message;
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    if (i > 0) message += '\n';
    if (i == kMostFaultsShown) {
      message += impl_->name + ": and " + std::to_string(ordered.size() - i) + " more";
      break;
    }
    message += impl_->at(ordered[i]->place) + ordered[i]->text;
  }
  return fail(ErrorCode::kParse, std::move(message));
}

std::string YamlReader::resolve(const std::string& relative) const {
  const std::filesystem::path path(relative);
  if (path.is_absolute()) return relative;
  return (std::filesystem::path(impl_->name).parent_path() / path).lexically_normal().string();
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& words) {
  constexpr std::size_t kLongest = 64;
  if (word.size() > kLongest) return "";
  std::string nearest;
  std::size_t nearest_distance = std::max<std::size_t>(word.size() / 3, 1) + 1;
  for (const std::string& candidate : words) {
    if (candidate.size() > kLongest) continue;
    // Insertions, removals, replacements and swapped neighbours (optimal string alignment); three
    // rows of the table suffice.
    std::vector<std::size_t> before(candidate.size() + 1), last(candidate.size() + 1),
        row(candidate.size() + 1);
    for (std::size_t j = 0; j <= candidate.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      before = last;
      last = row;
      row[0] = i;
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const std::size_t changed = word[i - 1] == candidate[j - 1] ? 0 : 1;
        row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + changed});
        if (i > 1 && j > 1 && word[i - 1] == candidate[j - 2] && word[i - 2] == candidate[j - 1])
          row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    if (row.back() < nearest_distance) {
      nearest_distance = row.back();
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace patternd
