/* Warploom's C interface: run commands, and run bundles inside your own program.
 *
 * A bundle is the folder that `warploom optimize` writes (out/NAME). Its sources can be compiled
 * into a program without any of this; here the bundle is loaded by its path instead, compiled once
 * and kept in the cache folder:
 *
 *   char* outcome = NULL;
 *   const char* search[] = {"optimize", "conv.onnx", "--budget", "60s", "--out", "conv", NULL};
 *   if (warploom_command(search, &outcome) != 0) return complain(warploom_error_text());
 *
 *   warploom_bundle* conv = NULL;
 *   if (warploom_open("conv", WARPLOOM_TRUST, &conv) != 0) return complain(warploom_error_text());
 *   // Device pointers, or the host's for a bundle of a CPU.
 *   void* tensors[] = {x, w, y};
 *   // Returns at once; `stream` is a cudaStream_t, a CUstream or NULL.
 *   if (warploom_run(conv, tensors, stream) != 0) return complain(warploom_error_text());
 *   warploom_unload(conv);
 *
 * Every function that can fail returns 0, or what the command line exits with: 2 bad input, 3 the
 * machine lacks something, 4 no correct kernel was found (docs/errors.md). The last error of the
 * calling thread can then be asked for. Nothing here prints.
 *
 * Searching takes the installed program `warploom`: beside this library (../bin), named by
 * WARPLOOM_PROGRAM, or on PATH. */
#ifndef WARPLOOM_WARPLOOM_H
#define WARPLOOM_WARPLOOM_H

#include <stddef.h>
#include <stdint.h>

#if defined(WARPLOOM_BUILD)
#define WARPLOOM_API __attribute__((visibility("default")))
#else
#define WARPLOOM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Runs `warploom ARGUMENTS --json` to its end. *json, where not NULL, gets the object it printed,
 * also a failure's; free it by warploom_free. `arguments` ends with NULL. {"show", "conv.onnx",
 * NULL} loads a model and gives its graph. */
WARPLOOM_API int warploom_command(const char* const* arguments, char** json);
WARPLOOM_API void warploom_free(char* text);

typedef struct warploom_bundle warploom_bundle;

/* One tensor that the caller passes: packed, row-major, aligned to 64 bytes. */
typedef struct warploom_tensor {
  const char* name;  /* the model's; lives as long as the bundle */
  const char* dtype; /* "f32", "bf16", "f16", "e4m3", "i64", … */
  const int64_t* shape;
  size_t rank;
  size_t bytes;
  int is_output;
} warploom_tensor;

/* Flag of warploom_open: you answer for whoever wrote the bundle. Its kernels for a CPU are
 * compiled and run in this process, with all rights that it has: they can read its memory and the
 * user's files, whether or not they compute the right numbers. A bundle that `warploom optimize`
 * wrote on this machine and that nobody else could change is one to trust; of any other, `warploom
 * verify` judges the kernels first. */
#define WARPLOOM_TRUST 1u

/* Loads a bundle's folder (or plan.json) for this machine's first visible GPU, or its CPU, as the
 * bundle says. Without WARPLOOM_TRUST in `flags` one for a CPU is refused with bundle-untrusted,
 * and nothing of it is compiled; one for a GPU is loaded, whose machine code is looked at and runs
 * on the GPU alone (there it can reach all memory of the process's context). Refuses with
 * wrong-machine where that is of another architecture than the kernels. Constants of the model are
 * kept on the device. */
WARPLOOM_API int warploom_open(const char* bundle, unsigned flags, warploom_bundle** opened);
/* The same without flags. */
WARPLOOM_API int warploom_load(const char* bundle, warploom_bundle** loaded);

/* The tensors to pass, in order: inputs, then outputs. */
WARPLOOM_API size_t warploom_tensor_count(const warploom_bundle* bundle);
WARPLOOM_API warploom_tensor warploom_tensor_at(const warploom_bundle* bundle, size_t index);

/* Starts the computation on `stream` (GPU; NULL: the legacy default stream) or computes (CPU).
 * `tensors` has one address for each tensor. The bundle's workspaces are its own, so launches of
 * one loaded bundle must not overlap in time; load it twice for that. One thread at a time; on a
 * GPU one that has the device's primary context, as every thread has that called the CUDA runtime.
 *
 * Inputs that `--constant` named are prepared by the first launch on these addresses. Who changes
 * one in place loads the bundle anew: launches go on with what was prepared.
 */
WARPLOOM_API int warploom_run(warploom_bundle* bundle, void* const* tensors, void* stream);
/* After its launches are done. NULL: nothing. */
WARPLOOM_API void warploom_unload(warploom_bundle* bundle);

/* The calling thread's last error: its stable code ("plan-invalid"), and several lines for a
 * person. "" before any. */
WARPLOOM_API const char* warploom_error_code(void);
WARPLOOM_API const char* warploom_error_text(void);
WARPLOOM_API const char* warploom_version(void);

#ifdef __cplusplus
}
#endif
#endif
