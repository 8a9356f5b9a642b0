// control: a ReLU of four at a time, by a grid that goes over the tensor
// expect: accepted
// problem: long_relu
// warploom: kernel relu grid=64 threads=256 args=x,y
extern "C" __global__ void __launch_bounds__(256) relu(const float* __restrict__ x, float* __restrict__ y) {
  constexpr int kCount = 300 * 257;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < kCount / 4; i += gridDim.x * 256) {
    const float4 v = reinterpret_cast<const float4*>(x)[i];
    reinterpret_cast<float4*>(y)[i] = {v.x > 0 ? v.x : 0, v.y > 0 ? v.y : 0, v.z > 0 ? v.z : 0, v.w > 0 ? v.w : 0};
  }
}
