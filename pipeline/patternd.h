/* patternd as a library: rectify with a loaded calibration, teach or load a pattern, find it; on
 * the caller's memory.
 *
 *   patternd_pattern* bolt = NULL;
 *   patternd_matcher* matcher = NULL;
 *   if (patternd_pattern_load("bolt.yaml", &bolt) != PATTERND_OK ||
 *       patternd_matcher_create(1280, 720, PATTERND_GRAY8, &bolt, NULL, 1, 0, &matcher) !=
 * PATTERND_OK) fprintf(stderr, "%s\n", patternd_last_error());
 *
 * Pixel centres have integer coordinates, (0, 0) is the centre of the top-left pixel, x to the
 * right, y down; angles are in degrees, positive ones turn clockwise on the screen. Every function
 * returns a status; where it is not PATTERND_OK, outputs are as they were and patternd_last_error()
 * says where, what, and what would be right. A handle is used by one thread at a time; different
 * handles by any number of threads. Patterns may be freed once the matchers that use them exist. No
 * function throws, prints or ends the process. */
#ifndef PATTERND_H
#define PATTERND_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PATTERND_API __attribute__((visibility("default")))
#else
#define PATTERND_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum patternd_status {
  PATTERND_OK = 0,
  PATTERND_INVALID_ARGUMENT = 1, /* a value or picture is wrong */
  PATTERND_NOT_FOUND = 2,        /* a file does not exist */
  PATTERND_IO = 3,               /* reading or writing failed */
  PATTERND_PARSE = 4,            /* a file is malformed */
  PATTERND_UNSUPPORTED = 5,
  PATTERND_EXHAUSTED = 6, /* no memory, or a limit would be passed */
  PATTERND_INTERNAL = 7   /* a fault of patternd's */
} patternd_status;

typedef enum patternd_format {
  PATTERND_GRAY8 = 1,  /* uint8_t */
  PATTERND_GRAY16 = 2, /* uint16_t, full scale 65535 */
  PATTERND_GRAYF32 = 3 /* float; rectification only */
} patternd_format;

/* A picture in the caller's memory: rows `stride_bytes` apart; pixels of two or four bytes, and
 * rows, start at multiples of that. */
typedef struct patternd_image {
  const void* data;
  int32_t width;
  int32_t height;
  size_t stride_bytes;
  int32_t format; /* patternd_format */
} patternd_image;

typedef struct patternd_mutable_image {
  void* data;
  int32_t width;
  int32_t height;
  size_t stride_bytes;
  int32_t format;
} patternd_mutable_image;

/* "0.1.0". */
PATTERND_API const char* patternd_version(void);
/* The calling thread's last error: one line, or "" where there was none; valid until its next call.
 */
PATTERND_API const char* patternd_last_error(void);

/* ---- Rectification ---- */

typedef struct patternd_rectifier patternd_rectifier;

/* Loads a calibration file for pictures of `format`. */
PATTERND_API patternd_status patternd_rectifier_load(const char* path, patternd_format format,
                                                     patternd_rectifier** rectifier);
/* Sizes in pixels of the pictures that go in and come out; any pointer may be NULL. */
PATTERND_API patternd_status patternd_rectifier_size(const patternd_rectifier* rectifier,
                                                     int32_t* input_width, int32_t* input_height,
                                                     int32_t* output_width, int32_t* output_height);
/* Rectifies `input` into `output`, which share no memory; both must have the sizes above and the
 * format given at loading. */
PATTERND_API patternd_status patternd_rectify(patternd_rectifier* rectifier,
                                              const patternd_image* input,
                                              const patternd_mutable_image* output);
/* Points without a picture: `xy` holds count pairs x, y and is overwritten. Rectified -> camera
 * picture, and back. A point without a counterpart becomes NaN, NaN. */
PATTERND_API patternd_status patternd_points_to_input(const patternd_rectifier* rectifier,
                                                      double* xy, size_t count);
PATTERND_API patternd_status patternd_points_to_output(const patternd_rectifier* rectifier,
                                                       double* xy, size_t count);
/* NULL is allowed, here and in the other _free functions. */
PATTERND_API void patternd_rectifier_free(patternd_rectifier* rectifier);

/* ---- Patterns ---- */

typedef struct patternd_pattern patternd_pattern;

/* Teaches from a picture of the pattern alone (PATTERND_GRAY8 or _GRAY16). `name`: 1 to 64 bytes
 * of UTF-8 without control characters. `mask`: NULL, or a
 * PATTERND_GRAY8 picture of the same size whose zeros do not count. `ref_xy`: NULL for the centre,
 * or two numbers in pattern pixels. */
PATTERND_API patternd_status patternd_pattern_teach(const char* name, const patternd_image* picture,
                                                    const patternd_image* mask,
                                                    const double* ref_xy,
                                                    patternd_pattern** pattern);
/* From `patternctl teach`'s YAML, or from a plain picture. */
PATTERND_API patternd_status patternd_pattern_load(const char* path, patternd_pattern** pattern);
/* Writes the YAML file NAME.yaml, and its pictures NAME.png and NAME_mask.png beside it. A PNG
 * there that belongs to no pattern file of this name is left alone: PATTERND_INVALID_ARGUMENT. */
PATTERND_API patternd_status patternd_pattern_save(const patternd_pattern* pattern,
                                                   const char* path);
/* Any pointer may be NULL. */
PATTERND_API patternd_status patternd_pattern_info(const patternd_pattern* pattern, int32_t* width,
                                                   int32_t* height, int32_t* levels,
                                                   double* angle_step_deg);
PATTERND_API void patternd_pattern_free(patternd_pattern* pattern);

/* ---- Search ---- */

/* As in the configuration file; fill it with patternd_search_params_init before changing what
 * matters. */
typedef struct patternd_search_params {
  size_t struct_size; /* set by patternd_search_params_init */
  double min_score;   /* 0.7 */
  int32_t max_matches;
  const double* angle_ranges_deg; /* angle_range_count pairs low, high; NULL: all angles. Read
                                     during the call only. */
  size_t angle_range_count;
  double scale_low, scale_high; /* 1, 1 */
  double max_overlap;           /* 0.3 */
  double min_visible;           /* 1 */
  double min_contrast;          /* 2 grey levels of 8 bit */
  int32_t polarity_any;         /* 0 */
  int32_t symmetry;             /* 1 */
  int32_t levels;               /* -1: as taught */
  double angle_step_deg;        /* 0: as taught */
  double roi[4];                /* x, y, width, height; width 0: all */
} patternd_search_params;

PATTERND_API void patternd_search_params_init(patternd_search_params* params);

typedef struct patternd_match {
  int32_t pattern; /* index into the patterns given to patternd_matcher_create */
  int32_t inverted;
  double x_px, y_px; /* of the reference point */
  double angle_deg;
  double scale;
  double score, runner_up; /* NCC, -1..1 */
  double visible;          /* share of the pattern inside the picture */
  double x_std_px, y_std_px, angle_std_deg;
} patternd_match;

typedef struct patternd_matcher patternd_matcher;

/* A matcher for pictures of one size and format. `params`: NULL for the defaults, or one for each
 * pattern. `threads`: 0 for as many as the process may use. Everything that searching needs is
 * allocated here. */
PATTERND_API patternd_status patternd_matcher_create(int32_t width, int32_t height,
                                                     patternd_format format,
                                                     patternd_pattern* const* patterns,
                                                     const patternd_search_params* params,
                                                     size_t pattern_count, int32_t threads,
                                                     patternd_matcher** matcher);
/* Finds the patterns. The best `capacity` matches are written, by falling score; `count` receives
 * how many were found, which may be more. `matches` may be NULL where capacity is 0. */
PATTERND_API patternd_status patternd_find(patternd_matcher* matcher, const patternd_image* image,
                                           patternd_match* matches, size_t capacity, size_t* count);
PATTERND_API void patternd_matcher_free(patternd_matcher* matcher);

/* ---- Connected components ---- */

typedef enum patternd_foreground {
  PATTERND_BY_THRESHOLD = 0, /* value > threshold (below: <) */
  PATTERND_BY_OTSU = 1,
  PATTERND_BY_LOCAL_MEAN = 2, /* value > mean + offset (below: < mean - offset) */
  PATTERND_BY_SIMILARITY = 3  /* every pixel; neighbours connect that differ by `similarity` at most
                               */
} patternd_foreground;

/* Fill it with patternd_label_params_init before changing what matters. */
typedef struct patternd_label_params {
  size_t struct_size; /* set by patternd_label_params_init */
  int32_t foreground; /* patternd_foreground */
  int32_t below;      /* 0 */
  double threshold;   /* grey levels of the format */
  int32_t local_mean_radius;
  int32_t connectivity; /* 8 */
  double local_mean_offset;
  double similarity;
  int64_t min_area; /* smaller components are left out, of the labels too; 1 */
  double roi[4];    /* x, y, width, height; width 0: all */
} patternd_label_params;

PATTERND_API void patternd_label_params_init(patternd_label_params* params);

typedef struct patternd_blob {
  int64_t area_px;
  double x_px, y_px; /* centroid */
  int32_t left, top, width, height;
  double mean, peak;
  int32_t peak_x, peak_y; /* the first in scan order */
  double angle_deg;       /* of the major axis, [-90, 90) */
  double major_px, minor_px;
  int32_t touches_border;
  int32_t reserved;
} patternd_blob;

typedef struct patternd_labeller patternd_labeller;

/* A labeller for pictures of one size and format (PATTERND_GRAY8 or _GRAY16). `threads`: 0 for as
 * many as the process may use. Everything that labelling needs is allocated here. */
PATTERND_API patternd_status patternd_labeller_create(int32_t width, int32_t height,
                                                      patternd_format format,
                                                      const patternd_label_params* params,
                                                      int32_t threads,
                                                      patternd_labeller** labeller);
/* Labels a picture. `labels`: NULL, or the caller's rows of width pixels, `label_stride_bytes` (a
 * multiple of 4) apart; 0 is background, components count from 1 in scan order of their first
 * pixels. `blobs`: NULL with capacity 0, or receives the statistics of the first `capacity` labels;
 * blobs[i] is that of label i + 1. `count` receives how many components there are. */
PATTERND_API patternd_status patternd_label(patternd_labeller* labeller,
                                            const patternd_image* image, int32_t* labels,
                                            size_t label_stride_bytes, patternd_blob* blobs,
                                            size_t capacity, int64_t* count);
PATTERND_API void patternd_labeller_free(patternd_labeller* labeller);

#ifdef __cplusplus
}
#endif

#endif /* PATTERND_H */
