// Runs CPU kernels on buffers from a file, and writes what the buffers hold then to another: the
// half of other_machine.h that is compiled for the other processor, beside the kernels and a table
// of them.
//
// Usage: driver FROM TO. All numbers are 64 bits, least first:
//   lists, and of each  buffers, and of each  bytes, and what they hold
//                       kernels, and of each  its place in the table, blocks, bytes of scratch,
//                                             arguments, and of each  a buffer, whether of zeros
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>
#include "guarded.h"

using Kernel = void (*)(void* const* buffers, long long task, void* scratch);
extern const Kernel kKernels[];

namespace {
using warploom::test::Guarded;

[[noreturn]] void stop(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  std::exit(1);
}

class Reader {
 public:
  explicit Reader(const char* path) : file_(std::fopen(path, "rb")) {
    if (!file_) stop("the file of buffers cannot be read");
  }

  int64_t number() {
    int64_t out = 0;
    if (std::fread(&out, sizeof out, 1, file_) != 1) stop("the file of buffers ends too early");
    return out;
  }

  std::vector<std::byte> bytes(int64_t count) {
    std::vector<std::byte> out(static_cast<size_t>(count));
    if (std::fread(out.data(), 1, out.size(), file_) != out.size())
      stop("the file of buffers ends too early");
    return out;
  }

 private:
  std::FILE* file_;
};

// NaNs, so that what is read before it is written shows.
std::unique_ptr<void, void (*)(void*)> scratch_of(int64_t bytes) {
  const auto whole = static_cast<size_t>((bytes + 8191) / 4096 * 4096);
  void* const memory = std::aligned_alloc(4096, whole);
  std::memset(memory, 0xff, whole);
  return {memory, std::free};
}

void run_kernel(Reader& in, const std::vector<std::unique_ptr<Guarded>>& buffers,
                const std::vector<int64_t>& bytes) {
  const Kernel kernel = kKernels[in.number()];
  const int64_t blocks = in.number();
  const auto scratch = scratch_of(in.number());
  std::vector<void*> pointers(static_cast<size_t>(in.number()));
  for (void*& pointer : pointers) {
    const auto buffer = static_cast<size_t>(in.number());
    pointer = buffers[buffer]->data();
    if (in.number() != 0) std::memset(pointer, 0, static_cast<size_t>(bytes[buffer]));
  }
  for (int64_t block = 0; block < blocks; ++block)
    kernel(pointers.data(), block, scratch.get());
  for (const auto& buffer : buffers)
    if (!buffer->intact()) stop("a kernel wrote outside a buffer");
}

void run_list(Reader& in, std::FILE* out) {
  std::vector<std::unique_ptr<Guarded>> buffers(static_cast<size_t>(in.number()));
  std::vector<int64_t> bytes;
  for (auto& buffer : buffers) {
    bytes.push_back(in.number());
    const std::vector<std::byte> held = in.bytes(bytes.back());
    buffer = std::make_unique<Guarded>(held.data(), held.size());
  }
  const int64_t kernels = in.number();
  for (int64_t i = 0; i < kernels; ++i)
    run_kernel(in, buffers, bytes);
  for (size_t i = 0; i < buffers.size(); ++i)
    std::fwrite(buffers[i]->data(), 1, static_cast<size_t>(bytes[i]), out);
}
}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) stop("usage: driver FROM TO");
  Reader in(argv[1]);
  std::FILE* const out = std::fopen(argv[2], "wb");
  if (!out) stop("the file of results cannot be written");
  const int64_t lists = in.number();
  for (int64_t i = 0; i < lists; ++i)
    run_list(in, out);
  return std::fclose(out) == 0 ? 0 : 1;
}
