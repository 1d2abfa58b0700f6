#include "pipeline/yaml_document.h"

#include <algorithm>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "pipeline/input_file.h"
#include "pipeline/utf8.h"

namespace patternd::yaml_detail {
namespace {

constexpr std::size_t kMostDepth = 32;
constexpr std::size_t kMostNodes = 20'000;

// yaml-cpp counts lines and bytes from 0.
Place place_of(const Document& document, const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return document.place_in_line(static_cast<std::size_t>(std::max(mark.line, 0)),
                                static_cast<std::size_t>(std::max(mark.column, 0)));
}

void find_lines(Document& document) {
  document.line_starts.assign(1, 0);
  for (std::size_t i = 0; i < document.text.size(); ++i) {
    if (document.text[i] == '\n') document.line_starts.push_back(i + 1);
  }
}

// Thrown by the builder through yaml-cpp and caught in parse_document.
struct Refused {
  YAML::Mark mark;
  std::string message;
};

// Builds the tree from yaml-cpp's events, so that the place of each key, the anchors and the depth
// are seen before anything is expanded.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(Document& document) : document_(document) {}

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
    document_.add(
        place_of(document_, mark), where,
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
      document_.add(place_of(document_, mark), path(),
                    "an anchor (&) stands here; take it out, anchors and aliases are not read");
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      document_.add(place_of(document_, mark), path(),
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
    leaf.place = missing ? open_.back().key_place : place_of(document_, mark);
    leaf.plain = tag != "!";
    leaf.value = value;
    if (value.find('\0') != std::string::npos) {
      document_.add(leaf.place, path(), "contains a NUL character; take it out");
      leaf.kind = Kind::kFaulty;
    }
    put(std::move(leaf));
  }
  void add_key(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
               const std::string& key) {
    check(mark, tag, anchor);
    Open& top = open_.back();
    top.key = key;
    top.key_place = place_of(document_, mark);
    top.has_key = true;
    for (const Entry& entry : top.tree.entries) {
      if (entry.key == key) {
        document_.add(top.key_place, path(),
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
    next.tree.place = place_of(document_, mark);
    open_.push_back(std::move(next));
  }
  void close() {
    Tree done = std::move(open_.back().tree);
    open_.pop_back();
    put(std::move(done));
  }
  void put(Tree value) {
    if (open_.empty()) {
      document_.root = std::move(value);
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

  Document& document_;
  std::vector<Open> open_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
};

// What yaml-cpp says about a line that a tab indents leads nobody to the tab.
bool is_indented_by_tab(const std::string& text, std::size_t line_start) {
  const std::size_t word = text.find_first_not_of(" \t", line_start);
  return text.substr(line_start, word - line_start).find('\t') != std::string::npos;
}

// What yaml-cpp would take for the end of the text or pass on unseen.
std::size_t first_foreign_byte(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F) return i;
  }
  return utf8_first_fault(text);
}

}  // namespace

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

std::string Document::at(const Place& place) const {
  return name + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": ";
}

Place Document::place_in_line(std::size_t line, std::size_t bytes) const {
  if (line >= line_starts.size()) return {line + 1, bytes + 1};
  std::size_t column = 1;
  const std::size_t start = line_starts[line];
  for (std::size_t i = start; i < std::min(start + bytes, text.size()); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) ++column;
  }
  return {line + 1, column};
}

Place Document::place_of_byte(std::size_t byte) const {
  const auto after = std::upper_bound(line_starts.begin(), line_starts.end(), byte);
  const auto line = static_cast<std::size_t>(after - line_starts.begin()) - 1;
  return place_in_line(line, byte - line_starts[line]);
}

void Document::add(const Place& place, const std::string& path, const std::string& what) const {
  faults.push_back({place, path.empty() ? what : path + ": " + what});
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

Result<Document> parse_document(const std::string& text, const std::string& name) {
  Document document;
  document.name = name;
  const bool byte_order_mark = text.compare(0, 3, "\xEF\xBB\xBF") == 0;
  document.text = byte_order_mark ? text.substr(3) : text;
  if (text.size() > kMostBytes) return too_large(name, kMostBytes);
  find_lines(document);
  const std::size_t foreign = first_foreign_byte(document.text);
  if (foreign != std::string::npos) {
    return fail(ErrorCode::kParse, document.at(document.place_of_byte(foreign)) + "the byte " +
                                       in_quotes(document.text.substr(foreign, 1)) +
                                       " is not text; must be YAML in UTF-8");
  }
  try {
    std::istringstream stream(document.text);
    YAML::Parser parser(stream);
    TreeBuilder builder(document);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused& refused) {
    return fail(ErrorCode::kParse, document.at(place_of(document, refused.mark)) + refused.message);
  } catch (const YAML::Exception& fault) {
    const Place place = place_of(document, fault.mark);
    const bool tab = place.line <= document.line_starts.size() &&
                     is_indented_by_tab(document.text, document.line_starts[place.line - 1]);
    return fail(ErrorCode::kParse,
                document.at(place) + "not valid YAML: " +
                    (tab ? "a tab indents this line; indent with spaces" : printable(fault.msg)));
  } catch (const std::exception& fault) {
    return fail(ErrorCode::kExhausted, name + ": cannot be read: " + fault.what());
  }
  if (document.root.kind == Kind::kNull)
    return fail(ErrorCode::kParse, name + ":1:1: is empty; must be a map of keys");
  if (document.root.kind != Kind::kMap) {
    return fail(ErrorCode::kParse, document.at(document.root.place) + kind_in_words(document.root) +
                                       "; must be a map of keys");
  }
  return document;
}

}  // namespace patternd::yaml_detail
