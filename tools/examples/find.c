/* Teaches a pattern from a rectangle of a picture, then finds it in the whole picture: the C API in
 * one page.
 *
 *   cc find.c -lpatternd -lm -o find          (installed; from a build folder: the README)
 *
 * The picture is made here, so that the example needs no files: a grey ramp with a few bright
 * shapes. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "patternd.h"

enum { kWidth = 320, kHeight = 240, kSide = 48, kLeft = 190, kTop = 90 };

/* Ends the program with patternd's message where a call failed. */
static void check(patternd_status status, const char* what) {
  if (status == PATTERND_OK) return;
  fprintf(stderr, "%s: %s\n", what, patternd_last_error());
  exit(1);
}

static void draw(uint8_t* pixels) {
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const int inside = x >= kLeft && x < kLeft + kSide && y >= kTop && y < kTop + kSide;
      const int u = x - kLeft;
      const int v = y - kTop;
      const int shape =
          (u > 8 && u < 20 && v > 6 && v < 40) || (v > 28 && v < 40 && u > 8 && u < 42);
      pixels[y * kWidth + x] = (uint8_t)(inside ? (shape ? 220 : 40) : 60 + x / 8);
    }
  }
}

int main(void) {
  static uint8_t pixels[kWidth * kHeight];
  draw(pixels);
  const patternd_image scene = {pixels, kWidth, kHeight, kWidth, PATTERND_GRAY8};
  const patternd_image part = {pixels + kTop * kWidth + kLeft, kSide, kSide, kWidth,
                               PATTERND_GRAY8};

  patternd_pattern* pattern = NULL;
  check(patternd_pattern_teach("corner", &part, NULL, NULL, &pattern), "teach");

  patternd_search_params params;
  patternd_search_params_init(&params);
  params.min_score = 0.8;
  patternd_matcher* matcher = NULL;
  check(patternd_matcher_create(kWidth, kHeight, PATTERND_GRAY8, &pattern, &params, 1, 1, &matcher),
        "matcher");

  patternd_match matches[10];
  size_t count = 0;
  check(patternd_find(matcher, &scene, matches, 10, &count), "find");
  for (size_t i = 0; i < count && i < 10; ++i) {
    printf("x %.2f y %.2f angle %.2f score %.3f\n", matches[i].x_px, matches[i].y_px,
           matches[i].angle_deg, matches[i].score);
  }
  patternd_matcher_free(matcher);
  patternd_pattern_free(pattern);

  const double x = kLeft + (kSide - 1) / 2.0;
  const double y = kTop + (kSide - 1) / 2.0;
  return count == 1 && fabs(matches[0].x_px - x) < 0.05 && fabs(matches[0].y_px - y) < 0.05 ? 0 : 1;
}
