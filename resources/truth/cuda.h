// The GPU's own words for what truth's kernels are written in.
#define FUNCTION __device__ inline
// A file's kernels are texts of their own: KERNEL_name is ENTRY in one of them, and BODY in others.
#define KERNEL(name, Task) KERNEL_##name(name, Task)
#define BODY(name, Task) FUNCTION void name##_body(const Task& task)
#define ENTRY(name, Task)                                                  \
  FUNCTION void name##_body(const Task& task);                             \
  extern "C" __global__ void __launch_bounds__(256) name(const Task* at) { \
    name##_body(*at);                                                      \
  }                                                                        \
  FUNCTION void name##_body(const Task& task)
#define SHARED __shared__
#define EACH_THREAD(t) if (const int t = static_cast<int>(threadIdx.x); true)
#define OWN 1
FUNCTION int own(int) { return 0; }
FUNCTION int lane() { return threadIdx.x; }
FUNCTION int lanes() { return blockDim.x; }
FUNCTION long long block() { return blockIdx.x; }
FUNCTION long long blocks() { return gridDim.x; }
FUNCTION void meet() { __syncthreads(); }
FUNCTION float as_float(unsigned bits) { return __uint_as_float(bits); }
FUNCTION unsigned as_bits(float number) { return __float_as_uint(number); }
FUNCTION void add_to(Word address, Word number) {
  atomicAdd(reinterpret_cast<unsigned long long*>(address),
            static_cast<unsigned long long>(number));
}
FUNCTION double nan_number() { return __longlong_as_double(0x7ff8000000000000ll); }
FUNCTION double infinite() { return __longlong_as_double(0x7ff0000000000000ll); }
#define UNROLL _Pragma("unroll")
