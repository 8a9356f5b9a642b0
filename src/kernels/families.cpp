#include "kernels/families.h"
namespace warploom::kernels {
std::vector<const Family*> families() {
  return {&matmul_wgmma_family(), &matmul_mma_family(),  &matmul_simt_family(), &rowwise_gpu_family(),
          &cpu_matmul_family(),   &rowwise_cpu_family(), &direct_family()};
}
}  // namespace warploom::kernels
