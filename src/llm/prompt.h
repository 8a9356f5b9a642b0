// Prompt: a kernel problem as a question to a model.
//
//   const Question question = question_of({.language = "C++", .problem = "y = Softmax(x)",
//                                          .buffers = {{"x", "f32", "[64,512]", "input"}, …},
//                                          .task = "Write a first kernel."});
//   question.messages[0]     // system: what a kernel file is, how to answer
//   question.messages[1]     // user: the problem, the machine, the source, the last verdicts
//
// What a user's files, a compiler or an earlier answer said may try to speak to the model. So all
// of it stands between fences, lines that begin with a mark which none of it holds, and the system
// message says that it is data. That does not make a model obey: it does not have to, since what it
// writes is judged as anybody's. Control characters are written as their numbers, long texts cut.
#pragma once
#include <string>
#include <vector>
#include "llm/exchange.h"

namespace warploom::llm {
// A tensor, by the name that kernels take it by.
struct BufferRow {
  std::string name;
  std::string type;   // "f32"
  std::string shape;  // "[64,512]"
  std::string role;   // "input", "output"
};

// A candidate that was judged.
struct TriedRow {
  std::string sentence;
  std::string verdict;  // "812.0 us", "compile-failed, line 7: expected ';'"
};

// All that a question says.
struct KernelPrompt {
  std::string language;  // "C++", "CUDA C++"
  bool gpu = false;
  std::string problem;  // one operator a line
  std::vector<BufferRow> buffers;
  std::string track;
  std::string tolerance;       // in words
  std::string target;          // the card or CPU, in words
  std::string bound = {};      // what is possible at best, in words
  std::string reference = {};  // the vendor's time, in words
  std::string source = {};     // the current one; empty: there is none
  std::string standing = {};   // its time, or why it was refused
  std::vector<TriedRow> tried = {};
  std::vector<std::string> ideas = {};
  std::string idea = {};  // to carry out, in words
  std::string task;       // what to do now
};

Question question_of(const KernelPrompt& prompt);
}  // namespace warploom::llm
