// What a compiled GPU kernel may be made of, read from its cubin and its PTX before anything loads
// it: nothing that outlives a launch, tells one launch from another, or reaches beyond its buffers.
//
// Three lists are looked at. The cubin's sections, symbols and attributes (cubin_parts.def): no
// global variables, no calls of the driver (printf, malloc, launches of its own), frames of local
// memory to a bound. Its machine code: no special register but those that say where in the grid a
// thread is, whatever the instruction came of. And, of a foreign kernel, the PTX that it was
// assembled from (ptx_check.h).
//
//   WARPLOOM_CHECK(check_gpu_kernel(list.kernels[i], binary.images[i], request.foreign));
//
// Errors: candidate-forbidden with what was found, of PTX with its line in the source. Within the
// room only.
#pragma once
#include <string>
#include <string_view>
#include "codegen/launch_list.h"
#include "verify/elf_file.h"

namespace warploom::verify {
// Bytes of local memory that a thread may have, all its calls together: the scrub before a call
// (gpu_scrub.h) fills as much.
inline constexpr int64_t kMostLocalBytes = 4096;

struct GpuText {
  std::string_view ptx;  // what a foreign image was assembled from
  bool foreign = false;
  bool programmatic = false;     // the launch may begin before the one in front of it has ended
  std::string_view source = {};  // whose lines are told
};

// ok, or what was found in `place`.
Status check_gpu_image(const ElfFile& file, const std::string& place, const GpuText& text = {});
// The same of a compiled kernel: `image` is its file, its PTX lies beside it (runtime/compilers.h).
Status check_gpu_kernel(const Kernel& kernel, const std::string& image, bool foreign);
// The largest frame of local memory of the kernels in an image, or in the file `image`; bytes.
Result<int64_t> local_bytes_of(const ElfFile& file, const std::string& place);
Result<int64_t> local_bytes_of(const std::string& image, const std::string& place);
}  // namespace warploom::verify
