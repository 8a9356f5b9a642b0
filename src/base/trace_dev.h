#pragma once
#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

inline double trace_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline bool tracing() {
  static const bool on = std::getenv("WARPLOOM_TRACE");
  return on;
}

inline void trace(const std::string& text) {
  if (!tracing()) return;
  FILE* f = std::fopen(std::getenv("WARPLOOM_TRACE"), "a");
  std::fprintf(f, "%.3f %d %s\n", trace_now(), ::getpid(), text.c_str());
  std::fclose(f);
}

struct TraceSpan {
  std::string name;
  double start = trace_now();

  ~TraceSpan() {
    const double s = trace_now() - start;
    if (s > 0.02) {
      char b[64];
      std::snprintf(b, 64, " %.3f s", s);
      trace(name + b);
    }
  }
};
