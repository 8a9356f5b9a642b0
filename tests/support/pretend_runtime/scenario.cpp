// Calls the launcher of the bundle `net` (tests/export/launching_test.cpp) as its arguments say,
// and prints what it started, a line for each call:
//
//   call X Y STREAM   x at address X, y at Y
//   capture STREAM    begin and end of a capture by the caller
//   end STREAM
//   fail CALL, mend CALL
//   device N, forget, graphs, count CALL
//   threads N         two threads, each with tensors and a stream of its own, call N times
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>
#include "net.h"
#include "runtime.h"

namespace {
cudaStream_t stream_of(long number) {
  return reinterpret_cast<cudaStream_t>(number);
}

void say(const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < lines.size(); ++i)
    std::printf("%s%s", i == 0 ? "" : "; ", lines[i].c_str());
  std::printf("\n");
}

cudaError_t call(long x, long y, long stream) {
  void* const tensors[] = {reinterpret_cast<void*>(x), reinterpret_cast<void*>(y)};
  return net_launch_array(tensors, reinterpret_cast<void*>(1L << 20), stream_of(stream));
}

void call_from_threads(int calls) {
  std::vector<std::thread> threads;
  for (long i = 1; i <= 2; ++i)
    threads.emplace_back([i, calls] {
      for (int n = 0; n < calls; ++n)
        (void)call(64 * i, 640 * i, i);
    });
  for (std::thread& thread : threads)
    thread.join();
}
}  // namespace

int main(int argc, char** argv) {
  for (int at = 1; at < argc; ++at) {
    const std::string word = argv[at];
    const auto next = [&] { return std::string(argv[++at]); };
    const auto number = [&] { return std::atol(argv[++at]); };
    if (word == "call") {
      const long x = number();
      const long y = number();
      const cudaError_t status = call(x, y, number());
      if (status != cudaSuccess) std::printf("error %d; ", static_cast<int>(status));
      say(pretend::said());
    } else if (word == "capture") {
      pretend::capture(stream_of(number()));
    } else if (word == "end") {
      say(pretend::captured(stream_of(number())));
    } else if (word == "fail") {
      pretend::fail(next(), true);
    } else if (word == "mend") {
      pretend::fail(next(), false);
    } else if (word == "device") {
      pretend::use_device(static_cast<int>(number()));
    } else if (word == "graphs") {
      std::printf("%zu\n", pretend::graphs());
    } else if (word == "count") {
      std::printf("%d\n", pretend::count(next()));
    } else if (word == "threads") {
      call_from_threads(static_cast<int>(number()));
      std::printf("%zu starts\n", pretend::said().size());
    }
#ifdef HAS_GRAPHS
    else if (word == "forget") {
      net_forget_graphs();
    }
#endif
  }
}
