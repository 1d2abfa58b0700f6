// Every kernel of the service in one translation unit: one image, one module, one load.
#include "cuda/kernels/components.cu"
#include "cuda/kernels/propagation.cu"
#include "cuda/kernels/pyramid.cu"
#include "cuda/kernels/rectify.cu"
