// Kernels for measuring, not for service: one translation unit, so that one image holds them all.
#include "cuda/study/study_ceilings.cu"
#include "cuda/study/study_rectify.cu"
#include "cuda/study/study_search.cu"
#include "cuda/study/study_trace.cu"
