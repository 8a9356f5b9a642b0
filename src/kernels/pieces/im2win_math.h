// What a math warpgroup of the im2win kernel does, or all of them together where they share a tile:
// reads a stage's windows while those of the one before are multiplied, a tile's first beside the
// last of the tile before.
//
// In the fp32 track windows are scaled by a power of two a row and split into two fp16 numbers
// (fp16_split.h): one row's scale changes from stage to stage, so a stage's sums are scaled back as
// they are added to the others. Of many stages what these additions lose is carried on
// (promotion.h), in the scale of the stage that follows: then a row's largest is that of all its
// windows so far, so that scales never grow, and what is carried stays finite.
#pragma once
#include "kernels/pieces/im2win_kernel.h"

namespace warploom::kernels {
class Im2winMath {
 public:
  // `number`: of the tiles that a stage serves. In the role, whose statements it makes.
  Im2winMath(Im2winKernel& kernel, int64_t number);
  void run();

 private:
  TensorId reg(const char* stem, Dtype dtype, int64_t columns);
  void sum_all();
  void sum_tile(const Index& round);
  void read_windows();
  void multiply(const Index& round, const Index& k);
  void add_products(const Index& k);
  void add_product(TensorId x, size_t weights, const Index& k);
  void add_up(bool carries);
  void finish(const Index& tile);

  Im2winKernel& kernel_;
  tile::Builder& t_;
  const Im2winStage& stage_;
  int64_t number_;
  int64_t m_;
  int64_t n_;
  bool split_;
  bool compensates_;
  TensorId staging_ = -1;
  TensorId acc_ = -1;
  TensorId part_ = -1;  // sums of a stage
  TensorId seen_ = -1;  // windows as they are read
  TensorId a_ = -1;     // and as they are multiplied
  TensorId rest_ = -1;
  // What a row's windows are multiplied by, and its products then: of the stage that is read, and
  // of the one that is multiplied.
  TensorId scale_ = -1;
  TensorId next_inverse_ = -1;
  TensorId inverse_ = -1;
  TensorId total_ = -1;
  TensorId most_ = -1;  // the largest of a row's windows so far
};
}  // namespace warploom::kernels
