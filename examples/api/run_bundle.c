/* Runs a CPU bundle on tensors of ones: run_bundle out/matmul_small --trust. On a GPU the addresses would be device pointers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warploom/warploom.h>

int main(int argc, char** argv) {
  if (argc < 2) return fprintf(stderr, "usage: run_bundle BUNDLE [--trust]\n"), 2;
  const unsigned flags = argc > 2 && strcmp(argv[2], "--trust") == 0 ? WARPLOOM_TRUST : 0;
  warploom_bundle* bundle = NULL;
  int status = warploom_open(argv[1], flags, &bundle);
  if (status != 0) return fprintf(stderr, "%s\n", warploom_error_text()), status;

  const size_t count = warploom_tensor_count(bundle);
  void** tensors = calloc(count, sizeof *tensors);
  for (size_t i = 0; i < count; ++i) {
    const warploom_tensor tensor = warploom_tensor_at(bundle, i);
    tensors[i] = aligned_alloc(64, (tensor.bytes + 63) / 64 * 64);
    if (!tensor.is_output)
      for (size_t e = 0; e < tensor.bytes / sizeof(float); ++e) ((float*)tensors[i])[e] = 1;  /* f32 inputs */
  }
  status = warploom_run(bundle, tensors, NULL);
  if (status != 0) fprintf(stderr, "%s\n", warploom_error_text());
  for (size_t i = 0; i < count && status == 0; ++i) {
    const warploom_tensor tensor = warploom_tensor_at(bundle, i);
    if (tensor.is_output) printf("%s %s: first element %g\n", tensor.name, tensor.dtype, *(float*)tensors[i]);
  }
  for (size_t i = 0; i < count; ++i) free(tensors[i]);
  free(tensors);
  warploom_unload(bundle);
  return status;
}
