// Progress on standard error: one rewritten line on a terminal, a plain line every few seconds elsewhere.
#pragma once

#include <string>

#include "search/optimize.h"

namespace warploom::cli {

class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(const search::Progress& progress);
  void clear();

 private:
  bool quiet_, terminal_, open_ = false;
  double next_seconds_ = 0;
};

// "12.3 s   41 tried   3 refused   best 812 us (1.31x of the reference): matmul_cpu block_m=…", at most `width` columns.
std::string progress_text(const search::Progress& progress, std::size_t width);

// Microseconds as people read them: "812 us", "1.24 ms".
std::string time_text(double us);

}  // namespace warploom::cli
