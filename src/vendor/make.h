// make: references that run, of a problem and on a device.
//
//   for (const Candidate& candidate : candidates(*device, problem)) {
//     const Result<runtime::Runnable> reference = candidate.make();
//     reference->name;   // "oneDNN 2.6.3 (convolution + relu, pooling)", "oneDNN 2.6.3 (matmul) +
//                        // plain", "plain"
//   }
//
// A runnable binds the problem's inputs and outputs by their names; what steps pass on, and the
// graph's constants, are its own. The same problem may have several references: libraries, and
// layouts that a library works in (tensors are given and wanted row by row: what brings them into
// another layout and back is part of the reference, weights included). Which of them is the fastest
// that is right, only running them tells (verify/judge.cpp does).
//
// Where a library does not serve a step with all that comes after it, the last operation becomes a
// step of its own; where it does not serve the step at all, the next library is asked; where none
// does, a plain kernel is made for it and for its neighbours of that kind.
#pragma once
#include <functional>
#include "vendor/program.h"

namespace warploom::vendor {
struct Candidate {
  std::string libraries;  // which are asked, and how: "oneDNN, its own layouts"; "plain"
  bool plain = false;     // nothing but plain kernels
  std::function<Result<runtime::Runnable>()> make;
};

// The most promising first, plain last. `device` outlives what they make.
std::vector<Candidate> candidates(runtime::Executor& device, const VendorProblem& problem,
                                  Track track);

// Opens a GPU's libraries, which takes a second the first time in a process: for who has nothing
// else to do yet.
void open_libraries(runtime::Executor& device);

// What would be called where every library of the engine were there and served all steps:
// "oneDNN (convolution + relu, pooling)". For people who ask before anything runs.
std::string expected_reference(const VendorProblem& problem, Engine engine);
}  // namespace warploom::vendor
