#include "pipeline/yaml_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "pipeline/utf8.h"

namespace patternd {
namespace {

constexpr std::size_t kMostBytes = std::size_t{4} << 20;
constexpr std::size_t kMostDepth = 32;
constexpr std::size_t kMostNodes = 20'000;
constexpr std::size_t kMostFaultsShown = 100;

// Counted from 1, columns in characters.
struct Place {
  std::size_t line = 1;
  std::size_t column = 1;
  friend bool operator<(const Place& a, const Place& b) {
    return a.line != b.line ? a.line < b.line : a.column < b.column;
  }
  friend bool operator==(const Place& a, const Place& b) {
    return a.line == b.line && a.column == b.column;
  }
};

struct Fault {
  Place place;
  std::string text;  // "key.path: what is wrong; what is accepted"
};

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

std::string shown_with_path(const std::string& path, const std::string& text) {
  return path.empty() ? text : path + ": " + text;
}

std::string join_path(const std::string& parent, std::string_view key) {
  // A key from the file may be anything; in a path it is shown plainly only where it is a word.
  const bool word =
      !key.empty() && key.size() <= 60 && std::all_of(key.begin(), key.end(), [](char c) {
        return c > ' ' && c != 0x7F && c != ':' && c != '"';
      });
  const std::string shown =
      word && utf8_first_fault(key) == std::string_view::npos ? std::string(key) : in_quotes(key);
  return parent.empty() ? shown : parent + "." + shown;
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

// A sign and digits without leading zeros (which YAML 1.1 reads as octal and 1.2 does not).
bool has_leading_zero(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

enum class NumberFault { kNone, kNotANumber, kTooLarge };

template <class T>
NumberFault parse_number(std::string_view text, std::string_view alphabet, T& value) {
  if (text.empty() || text.find_first_not_of(alphabet) != std::string_view::npos ||
      has_leading_zero(text)) {
    return NumberFault::kNotANumber;
  }
  if (text[0] == '+') text.remove_prefix(1);  // std::from_chars knows no plus sign
  if (text.empty() || text[0] == '+') return NumberFault::kNotANumber;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ptr != text.data() + text.size()) return NumberFault::kNotANumber;
  if (end.ec == std::errc::result_out_of_range) return NumberFault::kTooLarge;
  return end.ec == std::errc() ? NumberFault::kNone : NumberFault::kNotANumber;
}

}  // namespace

namespace yaml_detail {

enum class Kind {
  kNull,
  kScalar,
  kSequence,
  kMap,
  kFaulty  // its fault has been recorded when the file was read
};

struct Tree;
struct Entry;

struct Tree {
  Kind kind = Kind::kNull;
  Place place;
  bool plain = true;  // a scalar without quotes
  std::string value;
  std::vector<Tree> items;
  std::vector<Entry> entries;
  // What the reading code asked for; only maps that were asked anything have unknown keys.
  mutable bool asked = false;
  mutable std::vector<std::string> known;
};

struct Entry {
  std::string key;
  Place place;
  Tree value;
};

}  // namespace yaml_detail

namespace {

using yaml_detail::Entry;
using yaml_detail::Kind;
using yaml_detail::Tree;

const char* kind_in_words(const Tree& tree) {
  switch (tree.kind) {
    case Kind::kNull:
      return "has no value";
    case Kind::kSequence:
      return "is a list";
    case Kind::kMap:
      return "is a map of keys";
    case Kind::kScalar:
    case Kind::kFaulty:
      break;
  }
  return "is a single value";
}

}  // namespace

struct YamlReader::Impl {
  std::string name;
  std::string text;
  std::vector<std::size_t> line_starts;
  Tree root;
  mutable std::vector<Fault> faults;

  [[nodiscard]] std::string at(const Place& place) const {
    return name + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": ";
  }
  // yaml-cpp counts lines and bytes from 0.
  [[nodiscard]] Place place_of(const YAML::Mark& mark) const {
    if (mark.is_null()) return {};
    const auto line = static_cast<std::size_t>(std::max(mark.line, 0));
    const auto bytes = static_cast<std::size_t>(std::max(mark.column, 0));
    if (line >= line_starts.size()) return {line + 1, bytes + 1};
    std::size_t column = 1;
    const std::size_t start = line_starts[line];
    for (std::size_t i = start; i < std::min(start + bytes, text.size()); ++i) {
      if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) ++column;
    }
    return {line + 1, column};
  }
  void find_lines() {
    line_starts.assign(1, 0);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') line_starts.push_back(i + 1);
    }
  }
  [[nodiscard]] Place place_of_byte(std::size_t byte) const {
    const auto after = std::upper_bound(line_starts.begin(), line_starts.end(), byte);
    const auto line = static_cast<std::size_t>(after - line_starts.begin());
    YAML::Mark mark;
    mark.line = static_cast<int>(line) - 1;
    mark.column = static_cast<int>(byte - line_starts[line - 1]);
    return place_of(mark);
  }
  void add(const Place& place, const std::string& path, const std::string& what) const {
    faults.push_back({place, shown_with_path(path, what)});
  }
  void add_unknown_keys(const Tree& tree, const std::string& path) const;
};

namespace {

// Thrown by the builder through yaml-cpp and caught in YamlReader::parse.
struct Refused {
  YAML::Mark mark;
  std::string message;
};

// Builds the tree from yaml-cpp's events, so that the place of each key, the anchors and the depth
// are seen before anything is expanded.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(YamlReader::Impl& reader) : reader_(reader) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) throw Refused{mark, "a second document begins; one file holds one"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(mark, "", anchor, Kind::kNull, "");
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    const std::string where = path();
    add(mark, "", 0, Kind::kFaulty, "");
    reader_.add(reader_.place_of(mark), where,
                "an alias (*) stands here; write the value out, anchors and aliases are not read");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool plain = tag != "!";
    const bool null = plain && (value.empty() || value == "~" || value == "null");
    add(mark, tag, anchor, null ? Kind::kNull : Kind::kScalar, value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Kind::kSequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Kind::kMap);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Tree tree;
    std::string path;
    bool has_key = false;
    std::string key;
    Place key_place;
  };

  [[nodiscard]] std::string path() const {
    if (open_.empty()) return "";
    const Open& top = open_.back();
    if (top.tree.kind == Kind::kSequence)
      return top.path + "[" + std::to_string(top.tree.items.size()) + "]";
    return top.has_key ? join_path(top.path, top.key) : top.path;
  }
  [[nodiscard]] bool expects_key() const {
    return !open_.empty() && open_.back().tree.kind == Kind::kMap && !open_.back().has_key;
  }
  void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (++nodes_ > kMostNodes) {
      throw Refused{mark, "more than " + std::to_string(kMostNodes) + " values; the file is not " +
                              "one of patternd's"};
    }
    if (anchor != 0) {
      reader_.add(reader_.place_of(mark), path(),
                  "an anchor (&) stands here; take it out, anchors and aliases are not read");
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      reader_.add(reader_.place_of(mark), path(),
                  "a tag (" + in_quotes(tag) + ") stands here; take it out, tags are not read");
    }
  }
  void add(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Kind kind,
           const std::string& value) {
    if (expects_key()) return add_key(mark, tag, anchor, value);
    check(mark, tag, anchor);
    Tree leaf;
    leaf.kind = kind;
    // yaml-cpp places a missing value wherever it noticed; its key is what a person looks for.
    const bool missing = kind == Kind::kNull && !open_.empty() && open_.back().has_key;
    leaf.place = missing ? open_.back().key_place : reader_.place_of(mark);
    leaf.plain = tag != "!";
    leaf.value = value;
    if (value.find('\0') != std::string::npos) {
      reader_.add(leaf.place, path(), "contains a NUL character; take it out");
      leaf.kind = Kind::kFaulty;
    }
    put(std::move(leaf));
  }
  void add_key(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
               const std::string& key) {
    check(mark, tag, anchor);
    Open& top = open_.back();
    top.key = key;
    top.key_place = reader_.place_of(mark);
    top.has_key = true;
    for (const Entry& entry : top.tree.entries) {
      if (entry.key == key) {
        reader_.add(top.key_place, path(),
                    "the key stands twice, first in line " + std::to_string(entry.place.line) +
                        "; keep one of them");
        return;
      }
    }
  }
  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Kind kind) {
    if (expects_key()) throw Refused{mark, "a list or map stands as a key; keys are words"};
    if (open_.size() >= kMostDepth) {
      throw Refused{mark, "nested deeper than " + std::to_string(kMostDepth) +
                              " levels; the file is not one of patternd's"};
    }
    check(mark, tag, anchor);
    Open next;
    next.path = path();
    next.tree.kind = kind;
    next.tree.place = reader_.place_of(mark);
    open_.push_back(std::move(next));
  }
  void close() {
    Tree done = std::move(open_.back().tree);
    open_.pop_back();
    put(std::move(done));
  }
  void put(Tree value) {
    if (open_.empty()) {
      reader_.root = std::move(value);
      return;
    }
    Open& top = open_.back();
    if (top.tree.kind == Kind::kSequence) {
      top.tree.items.push_back(std::move(value));
      return;
    }
    top.has_key = false;
    top.tree.entries.push_back({top.key, top.key_place, std::move(value)});
  }

  YamlReader::Impl& reader_;
  std::vector<Open> open_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
};

}  // namespace

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
  [[nodiscard]] std::optional<T> number(T low, T high, std::string_view alphabet,
                                        const std::string& accepted) const {
    const Tree* scalar = plain_scalar(accepted);
    if (scalar == nullptr) return std::nullopt;
    T value{};
    const NumberFault fault = parse_number(scalar->value, alphabet, value);
    if (fault == NumberFault::kNone && value >= low && value <= high) return value;
    const bool bare = fault != NumberFault::kNotANumber && scalar->value.size() <= 60;
    add("is " + (bare ? scalar->value : in_quotes(scalar->value)), accepted);
    return std::nullopt;
  }
  [[nodiscard]] std::optional<double> real(double low, double high) const {
    return number<double>(low, high, "+-.0123456789eE",
                          "must be " + shown_range("a number", low, high, shown_number));
  }
};

bool YamlNode::present() const { return impl_->tree != nullptr; }
bool YamlNode::is_map() const { return present() && impl_->tree->kind == Kind::kMap; }
bool YamlNode::is_sequence() const { return present() && impl_->tree->kind == Kind::kSequence; }
bool YamlNode::is_scalar() const { return present() && impl_->tree->kind == Kind::kScalar; }
std::string YamlNode::path() const { return impl_->path; }

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
  return impl_->number<std::int64_t>(low, high, "+-0123456789", accepted).value_or(fallback);
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
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return fail(ErrorCode::kNotFound, path + ": no such file");
  if (std::filesystem::is_directory(status))
    return fail(ErrorCode::kInvalidArgument, path + ": is a folder; must be a YAML file");
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorCode::kIo, path + ": cannot be opened; check its permissions");
  std::string text;
  std::array<char, 16384> block{};
  while (file && text.size() <= kMostBytes) {
    file.read(block.data(), block.size());
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) return fail(ErrorCode::kIo, path + ": cannot be read");
  return parse(text, path);
}

namespace {

// What yaml-cpp would take for the end of the text or pass on unseen.
std::size_t first_foreign_byte(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F) return i;
  }
  return utf8_first_fault(text);
}

}  // namespace

Result<YamlReader> YamlReader::parse(const std::string& text, const std::string& name) {
  auto impl = std::make_unique<Impl>();
  impl->name = name;
  const bool byte_order_mark = text.compare(0, 3, "\xEF\xBB\xBF") == 0;
  impl->text = byte_order_mark ? text.substr(3) : text;
  if (text.size() > kMostBytes)
    return fail(ErrorCode::kParse, name + ": is larger than 4 MiB; not one of patternd's files");
  impl->find_lines();
  const std::size_t foreign = first_foreign_byte(impl->text);
  if (foreign != std::string::npos) {
    return fail(ErrorCode::kParse, impl->at(impl->place_of_byte(foreign)) + "the byte " +
                                       in_quotes(impl->text.substr(foreign, 1)) +
                                       " is not text; must be YAML in UTF-8");
  }
  try {
    std::istringstream stream(impl->text);
    YAML::Parser parser(stream);
    TreeBuilder builder(*impl);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused& refused) {
    return fail(ErrorCode::kParse, impl->at(impl->place_of(refused.mark)) + refused.message);
  } catch (const YAML::Exception& fault) {
    return fail(ErrorCode::kParse,
                impl->at(impl->place_of(fault.mark)) + "not valid YAML: " + printable(fault.msg));
  } catch (const std::exception& fault) {
    return fail(ErrorCode::kExhausted, name + ": cannot be read: " + fault.what());
  }
  if (impl->root.kind == Kind::kNull)
    return fail(ErrorCode::kParse, name + ":1:1: is empty; must be a map of keys");
  if (impl->root.kind != Kind::kMap) {
    return fail(ErrorCode::kParse,
                impl->at(impl->root.place) + kind_in_words(impl->root) + "; must be a map of keys");
  }
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
