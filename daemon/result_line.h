// The `result` line of PROTOCOL.md, written into memory set aside beforehand. The service and
// `patternctl match` use the same code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/line_writer.h"
#include "pipeline/frame.h"
#include "pipeline/frame_processor.h"

namespace patternd {

// No line is longer, its newline included.
inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

// What of a result line stays the same from frame to frame.
struct ResultFormat {
  struct PatternLabel {
    std::string name;
    int symmetry = 1;     // n-fold: angles are printed in [−180/n, 180/n)
    int max_matches = 0;  // the most that one frame yields
  };
  std::vector<PatternLabel> patterns;  // Match::pattern counts in this list
  bool has_blobs = false;              // `blobs` is printed
  int max_blobs = 0;
};
[[nodiscard]] ResultFormat result_format(const ProcessorConfig& config);

// Bytes that suffice for any line of this format (kMaxLineBytes at most; a longer one is cut), with
// `image_bytes` of file name at most.
[[nodiscard]] std::size_t result_line_bound(const ResultFormat& format,
                                            std::size_t image_bytes = 0);
// Matches that one line can hold.
[[nodiscard]] std::size_t match_bound(const ResultFormat& format);

// Where a match stands in its line, so that a subscriber of some patterns can be given those alone.
struct MatchSpan {
  std::uint32_t begin = 0;  // its '{'
  std::uint32_t end = 0;    // behind its '}'
  std::uint32_t pattern = 0;
};

// One line in two steps, because its last part tells how long the writing of its first part took:
//   ResultLineWriter line(memory, size);
//   line.begin(format, info, result, "", &spans);
//   times[Stage::kPublish] = …;
//   const std::string_view text = line.finish(times);  // ends with '\n'
// `memory` holds result_line_bound() bytes. Matches and blobs come in the result's order and are
// cut, last first, where the line would pass the bound; `matches_total` and `blobs_total` then say
// how many there were. `blobs_total` also stands where the processor kept fewer than there were.
class ResultLineWriter {
 public:
  ResultLineWriter(char* memory, std::size_t size);
  // `image` (`patternctl match`): printed behind the type where not empty. `spans`: cleared, then
  // one for each match printed; may be null.
  void begin(const ResultFormat& format, const FrameInfo& info, const FrameResult& result,
             std::string_view image, std::vector<MatchSpan>* spans);
  [[nodiscard]] std::string_view finish(const StageTimes& times);

 private:
  void write_matches(const ResultFormat& format, const FrameResult& result,
                     std::vector<MatchSpan>* spans);
  void write_blobs(const FrameResult& result);

  LineWriter line_;
};

// One match, one blob, as they stand in the line.
void write_match(LineWriter& line, const ResultFormat& format, const Match& match);
void write_blob(LineWriter& line, const Blob& blob);

// A whole line as a string, for programs that print few.
[[nodiscard]] std::string result_line(const ResultFormat& format, const FrameInfo& info,
                                      const FrameResult& result, std::string_view image = {});

}  // namespace patternd
