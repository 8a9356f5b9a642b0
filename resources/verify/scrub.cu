// What a kernel could find of those before it, filled with words of a pattern: the shared memory
// and the registers of every multiprocessor, and the threads' local memory (verify/gpu_scrub.cpp).
// words[0] is the pattern; the others belong to the barrier, and are zeros at first.
#ifndef LOCAL_WORDS
#define LOCAL_WORDS 16
#endif

// As fp32 some 1e19 of either sign: who works with it gets a result that is visibly wrong, and
// finite.
__device__ inline unsigned mixed(unsigned pattern, unsigned i) {
  unsigned x = (pattern ^ i) * 2654435761u;
  x ^= x >> 15;
  return (x * 2246822519u & 0x807fffffu) | 0x5f000000u;
}

// Returns when all blocks have come here. So they are on the device together, which holds each in a
// place of its own: no multiprocessor is left out.
__device__ inline void meet(volatile unsigned* words) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned round = words[2];
    __threadfence();
    if (atomicAdd(const_cast<unsigned*>(words) + 1, 1u) == gridDim.x - 1) {
      words[1] = 0;
      __threadfence();
      words[2] = round + 1;
    } else {
      while (words[2] == round) {
      }
    }
  }
  __syncthreads();
}

// One block a multiprocessor, with all the shared memory that a block can have: none holds two.
extern "C" __global__ void __launch_bounds__(1024, 1) scrub_blocks(volatile unsigned* words) {
  extern __shared__ volatile unsigned held[];
  const unsigned pattern = words[0];
  unsigned bytes;
  asm("mov.u32 %0, %dynamic_smem_size;" : "=r"(bytes));
  for (unsigned i = threadIdx.x; i < bytes / 4; i += 1024) held[i] = mixed(pattern, i);
  meet(words);
  // As many values as there are registers, all alive over the loop.
  constexpr int kValues = 54;
  unsigned values[kValues];
#pragma unroll
  for (int i = 0; i < kValues; ++i) values[i] = mixed(pattern, i * 1024 + threadIdx.x);
#pragma unroll 1
  for (unsigned turn = 0; turn <= (pattern & 1); ++turn) {
    const unsigned first = values[0];
#pragma unroll
    for (int i = 0; i + 1 < kValues; ++i) values[i] += values[i + 1] * 5;
    values[kValues - 1] += first;
  }
  unsigned all = 0;
#pragma unroll
  for (int i = 0; i < kValues; ++i) all ^= values[i];
  if (all == 0x12345678u && pattern == 0) words[3] = all;  // which no compiler can know
}

// As many blocks as fit, each thread with a frame of LOCAL_WORDS.
extern "C" __global__ void __launch_bounds__(512, 4) scrub_frames(volatile unsigned* words) {
  volatile unsigned frame[LOCAL_WORDS];
  const unsigned pattern = words[0];
#pragma unroll 1
  for (unsigned i = 0; i < LOCAL_WORDS; ++i) frame[i] = mixed(pattern, i);
  meet(words);
  if (frame[pattern % LOCAL_WORDS] == 0x12345678u && pattern == 0) words[3] = 1;
}
