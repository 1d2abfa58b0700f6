// The tables that the generated files hold: this build's device images.
#pragma once

extern "C" {

// The suffixes are the words that images.cmake uses.
enum PatterndImageKind { PATTERND_IMAGE_cubin, PATTERND_IMAGE_ptx, PATTERND_IMAGE_universal };

// One image; `end` is a zero byte past the last, so that PTX is a string. The last row's name is
// null.
struct PatterndImageRow {
  const char* name;
  PatterndImageKind kind;
  int architecture;  // 10 · major + minor
  const unsigned char* begin;
  const unsigned char* end;
};
extern const PatterndImageRow patternd_images_rows[];  // the service's
extern const PatterndImageRow
    patternd_study_images_rows[];  // the study's: not linked into programs but its own
}
