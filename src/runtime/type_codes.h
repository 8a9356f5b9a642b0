// What the libraries call our element types, one row a type.
#pragma once
#include "base/dtype.h"

namespace warploom::runtime {
struct TypeCodes {
  Dtype dtype;
  int cuda = -1;                   // cudaDataType; -1: none
  int dnnl = 0;                    // dnnl_data_type_t; 0: none
  int tensor_map = 0;              // CUtensorMapDataType; what TMA does not interpret goes as bytes
  const char* map_name = "UINT8";  // the same as text: CU_TENSOR_MAP_DATA_TYPE_…
};

inline constexpr TypeCodes kTypeCodes[] = {{Dtype::f64, 1, 7, 8, "FLOAT64"},
                                           {Dtype::f32, 0, 3, 7, "FLOAT32"},
                                           {Dtype::tf32, 0, 3, 11, "TFLOAT32"},
                                           {Dtype::bf16, 14, 2, 9, "BFLOAT16"},
                                           {Dtype::f16, 2, 1, 6, "FLOAT16"},
                                           {Dtype::e4m3, 28},
                                           {Dtype::e5m2, 29},
                                           {Dtype::i64, -1, 0, 5, "INT64"},
                                           {Dtype::i32, -1, 0, 3, "INT32"}};

constexpr TypeCodes codes_of(Dtype dtype) {
  for (const TypeCodes& row : kTypeCodes)
    if (row.dtype == dtype) return row;
  return {dtype};
}
}  // namespace warploom::runtime
