// One kernel of a plain reference: a value of a nest for all that it varies along, or an output.
// Private to plain*.cpp.
#pragma once
#include "loopnest/loop_nest.h"

namespace warploom::vendor {
using graph::Shape;

struct Stage {
  int value = 0;   // of the nest: a reduction or scan, or what is elementwise
  std::string to;  // the buffer
  const loopnest::Access* place =
      nullptr;  // where in it; null: packed, by what the value varies along
};

struct Stages {
  const loopnest::LoopNest& nest;
  std::vector<std::string> kept;  // the buffer of each value that has one

  Shape shape_of(int value) const;  // sizes of the axes that it varies along
};

struct StageText {
  std::string text;
  std::vector<std::string> buffers;  // in the order of the kernel's arguments
  int64_t blocks = 1;
  int threads = 1;
};

StageText cpu_stage(const Stages& stages, const Stage& stage, const std::string& name);
StageText cuda_stage(const Stages& stages, const Stage& stage, const std::string& name);
}  // namespace warploom::vendor
