// Costs: seconds that the phases of a search took so far, from which is told what is still to be
// kept back, and what a search that ended with nothing would have needed.
#pragma once
#include <algorithm>

namespace warploom::search {
class Costs {
 public:
  // `once`: of these, what the next process finds done.
  void set_up_took(double seconds, double once = 0) {
    setup_ = std::max(0.0, seconds - once);
    first_set_up_ = std::max(first_set_up_, seconds);
  }

  // Another evaluator gets ready while candidates are tried.
  void stands_by(bool is_there) { stands_by_ = is_there; }

  // A family's inputs and their truth, where these are a GPU's.
  void family_took(double seconds) { family_ = seconds; }

  void compiling_took(double seconds) {
    const bool is_first = compile_ <= 0;
    compile_ = std::max(compile_, seconds);
    usual_compile_ = is_first ? seconds : 0.7 * usual_compile_ + 0.3 * seconds;
  }

  void judging_took(double seconds) {
    // The first judgement makes what later ones find ready: of these half as much is expected.
    constexpr double kLater = 0.5;
    const bool early = judgements_++ < 2;
    judge_ = early ? seconds : 0.7 * judge_ + 0.3 * seconds;
    if (judgements_ > 1) return;
    first_ = seconds;
    judge_ = kLater * seconds;
  }

  double set_up() const { return setup_; }  // of another process

  double first_set_up() const { return first_set_up_; }

  double compile() const { return compile_; }  // of the slowest text

  // Of a text as they came last: the first of a run may have made what later ones find ready.
  double usual_compile() const { return usual_compile_; }

  double judgement() const { return judge_; }

  // A fresh evaluator's start, and its whole judgement: so many families of inputs are drawn for it
  // that half a second goes even where a candidate is screened in a hundredth of that. Truth that
  // is dear is made in parts (TruthEngine::prepare()), of all families but the first.
  double last_round() const {
    const double start = stands_by_ ? 0 : 1.2 * setup_;
    return start + whole_judgement();
  }

  // The same in an evaluator that is ready.
  double whole_judgement() const {
    constexpr double kLeast = 0.5;
    constexpr double kFamilies = 11;
    constexpr double kFirst = 2;       // times the truth of the first
    constexpr double kParts = 1;       // seconds, of the parts of the others
    constexpr double kRunShare = 0.3;  // of a screening, for a call on a family and its comparison
    const double truth = std::min(kFamilies * family_, kFirst * family_ + kParts);
    const double families = family_ > 0 ? truth + kFamilies * kRunShare * judge_ : 0;
    return std::max({2 * judge_, first_, kLeast, kLeast + families});
  }

  // The measurements of the finalists; and both.
  double finalists() const { return 4 * judge_; }

  double finals() const { return last_round() + finalists(); }

 private:
  double setup_ = 0;
  double first_set_up_ = 0;
  double family_ = 0;
  bool stands_by_ = false;
  double compile_ = 0;
  double usual_compile_ = 0;
  double judge_ = 0;
  double first_ = 0;
  int judgements_ = 0;
};
}  // namespace warploom::search
