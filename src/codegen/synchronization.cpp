#include "codegen/synchronization.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "codegen/cuda_analysis.h"
#include "codegen/pipeline_stages.h"
#include "layout/tv_layout.h"
#include "synth/sites.h"
#include "synth/synthesize.h"
#include "target/instruction.h"
#include "tile/program.h"

namespace warploom::codegen {
namespace {
using layout::TvLayout;
using target::Method;

// A piece of shared memory, as barriers tell them apart.
struct SharedPlace {
  enum class Kind : uint8_t { tensor, convert_scratch, statement_scratch } kind = Kind::tensor;
  int64_t number = 0;  // the tensor, the scratch's offset, the statement
  int part = 0;        // of several that a statement has
  friend auto operator<=>(const SharedPlace&, const SharedPlace&) = default;
};

SharedPlace tensor_place(TensorId id) {
  return {SharedPlace::Kind::tensor, id};
}

// Registers that wgmma in flight writes, or reads.
struct InFlight {
  bool written = false;
  int behind = -1;  // groups committed after the last that names them; -1: it is open
  friend bool operator==(const InFlight&, const InFlight&) = default;
};

// What the statements so far have left to be waited for.
struct SyncState {
  // Shared memory that the role's threads wrote and read since they last met.
  std::set<SharedPlace> written;
  std::set<SharedPlace> read;
  std::set<SharedPlace> unfenced;  // written by threads since their last fence for tma and wgmma
  std::set<TensorId> tma_reads;    // shared tensors that a tma store may still read
  std::set<PipelineId> consumed;   // within one thread of control, since its threads last met
  bool read_parts = false;         // of a cluster reduction, since the role's threads last met
  std::map<TensorId, InFlight> in_flight;
  bool wgmma_open = false;  // some are issued and not committed
  int groups = 0;           // committed and perhaps not waited for
  // Perhaps, since wgmma was last told that the instructions before it are done.
  bool registers_changed = false;
  friend bool operator==(const SyncState&, const SyncState&) = default;

  // Where control may come from either.
  void join(SyncState other) {
    written.merge(other.written);
    read.merge(other.read);
    unfenced.merge(other.unfenced);
    tma_reads.merge(other.tma_reads);
    consumed.merge(other.consumed);
    read_parts |= other.read_parts;
    for (const auto& [id, its] : other.in_flight) {
      int& behind = in_flight.try_emplace(id, its).first->second.behind;
      behind = std::min(behind, its.behind);
    }
    wgmma_open |= other.wgmma_open;
    groups = std::max(groups, other.groups);
    registers_changed |= other.registers_changed;
  }

  // The role's threads.
  void met() {
    written.clear();
    read.clear();
    consumed.clear();
    read_parts = false;
  }
};

}  // namespace

class SyncPass {
 public:
  SyncPass(const CudaAnalysis& analysis, Synchronization& out)
      : analysis_(analysis), program_(analysis.program), out_(out) {}

  void run();

 private:
  void follow();
  void section(std::span<const Statement> statements, int role);
  void body(std::span<const Statement> statements);
  void statement(const Statement& one);
  static bool names(const Statement& one, TensorId tensor);
  void wait_for_registers(const Statement& one);
  void visit(StatementId id, const For& loop);
  void widen(SyncState& head, const SyncState& state);
  void visit(StatementId id, const If& branch);

  void visit(StatementId, const Roles&) {}  // at the top alone: run()

  void visit(StatementId id, const Copy& copy);
  void visit(StatementId id, const ConvertLayout&);
  void visit(StatementId id, const Reduce& node);
  void visit(StatementId id, const Scan& node);
  void through_shared(StatementId id, int number, const SharedPlace& scratch);
  void visit(StatementId id, const ClusterReduce& node);
  void finish_cluster_reduce();

  // Nothing but what wait_for_registers() has seen to.
  void visit(StatementId, const Fill&) {}

  void visit(StatementId, const Map&) {}

  void visit(StatementId, const Bitcast&) {}

  void visit(StatementId id, const Mma& node);
  void finish_wgmma(int groups, std::vector<SyncAction>& to);
  void visit(StatementId id, const Produce& node);
  void visit(StatementId id, const Consume& node);
  void finish_stage(const Consume& node, std::vector<SyncAction>& after);
  void visit(StatementId id, const Signal&);
  void visit(StatementId id, const Wait&);

  void visit(StatementId, const ClusterSync&) { now_.met(); }

  void meet(const SyncPlace& here);
  void before_write(const SyncPlace& here, const SharedPlace& memory);
  void before_read(const SyncPlace& here, const SharedPlace& memory);
  void before_async_read(const SyncPlace& here, TensorId tensor);
  std::vector<SyncAction>& place(const SyncPlace& at);

  void note(const SyncPlace& at, SyncAction action) { place(at).push_back(std::move(action)); }

  bool is_stage(TensorId id) const { return analysis_.tensor(id).pipeline >= 0; }

  const TvLayout& registers(TensorId id) const { return analysis_.solution.registers.at(id); }

  const CudaAnalysis& analysis_;
  const Program& program_;
  int64_t threads_ = 0;  // of the role
  Synchronization& out_;
  SyncState now_;
  bool single_thread_ = false;       // the role's code runs in one elected thread
  bool in_stage_ = false;            // inside a Produce or Consume
  int loops_ = 0;                    // around the statement
  std::optional<TensorId> reduced_;  // by a cluster reduction whose parts may not have arrived
  std::map<StatementId, SyncState> heads_;  // of loops: before each turn
  bool heads_changed_ = false;
  bool recording_ = false;
  std::vector<SyncAction> discarded_;  // what is noted while it is not
};

void SyncPass::run() {
  do {
    heads_changed_ = false;
    follow();
  } while (heads_changed_);
  recording_ = true;
  follow();
}

void SyncPass::follow() {
  const std::span<const Statement> all(program_.body);
  threads_ = program_.warps * 32;
  if (!roles_of(program_)) return section(all, -1);
  if (all.size() > 1) section(all.first(all.size() - 1), -1);
  const Roles& roles = *roles_of(program_);
  for (size_t i = 0; i < roles.roles.size(); ++i) {
    threads_ = roles.roles[i].warps * 32;
    section(roles.roles[i].body, as_int(i));
  }
}

// The statements of one thread of control, from a state where nothing is left to be waited for.
void SyncPass::section(std::span<const Statement> statements, int role) {
  now_ = {};
  single_thread_ = analysis_.is_single_thread(role);
  body(statements);
  std::vector<SyncAction>& end = recording_ ? out_.ends_[role] : discarded_;
  if (!now_.in_flight.empty()) finish_wgmma(0, end);  // sums that nobody stored
  if (!now_.tma_reads.empty()) end.push_back({SyncKind::wait_tma_stores});
}

void SyncPass::body(std::span<const Statement> statements) {
  for (const Statement& one : statements)
    if (!analysis_.skipped_fills.fills.contains(one.id)) statement(one);
  finish_cluster_reduce();
}

void SyncPass::statement(const Statement& one) {
  ++out_.steps_;
  wait_for_registers(one);
  const bool may_wait = one.is<Map, Fill, Reduce, Copy>();
  if (reduced_ && (!may_wait || names(one, *reduced_))) {
    note({one.id, SyncPart::before}, {SyncKind::finish_cluster_reduce});
    finish_cluster_reduce();
  }
  one.visit([&](const auto& node) { visit(one.id, node); });
}

bool SyncPass::names(const Statement& one, TensorId tensor) {
  return std::ranges::count(uses_of(one), tensor, &TensorUse::tensor) > 0;
}

// Registers that wgmma in flight writes or reads are not touched before it has finished.
void SyncPass::wait_for_registers(const Statement& one) {
  if (one.is<Mma>()) return;
  now_.registers_changed = true;
  std::optional<int> behind;
  for (const TensorUse& use : uses_of(one))
    if (const auto found = now_.in_flight.find(use.tensor); found != now_.in_flight.end())
      behind = std::min(found->second.behind, behind.value_or(found->second.behind));
  if (behind) finish_wgmma(std::max(*behind, 0), place({one.id, SyncPart::before}));
}

// Control flow.
void SyncPass::visit(StatementId id, const For& loop) {
  if (analysis_.never_runs(loop)) return;
  const SyncState entry = now_;
  SyncState& head = heads_.try_emplace(id, now_).first->second;
  widen(head, now_);
  now_ = head;
  ++loops_;
  body(loop.body);
  --loops_;
  widen(head, now_);
  if (!analysis_.runs(loop.begin, loop.end)) now_.join(entry);
  if (!lagging_in(analysis_, loop.body).empty()) finish_wgmma(0, place({id, SyncPart::after}));
}

// Control may come to a loop's head in this state, too.
void SyncPass::widen(SyncState& head, const SyncState& state) {
  const SyncState before = head;
  head.join(state);
  heads_changed_ |= head != before;
}

void SyncPass::visit(StatementId id, const If& branch) {
  // A group ends here, which nobody waits for: ptxas wants it whole.
  if (now_.wgmma_open) finish_wgmma(now_.groups + 2, place({id, SyncPart::inside}));
  const SyncState entry = now_;
  body(branch.body);
  now_.join(entry);
}

// Registers and memory.
void SyncPass::visit(StatementId id, const Copy& copy) {
  const auto sides = synth::sides_of(program_, copy);
  if (!sides.shared || (sides.registers && is_stage(sides.shared->tensor))) return;
  const TensorId shared = sides.shared->tensor;
  const SyncPlace here{id, SyncPart::inside};
  if (analysis_.solution.choices.at(id).by(Method::tma)) {
    if (sides.load) return;
    before_async_read(here, shared);
    now_.tma_reads.insert(shared);
  } else if (!is_stage(shared)) {
    const bool writes = sides.registers ? !sides.load : sides.load;
    if (writes)
      before_write(here, tensor_place(shared));
    else
      before_read(here, tensor_place(shared));
  } else if (sides.load) {
    now_.unfenced.insert(tensor_place(shared));
  }
}

void SyncPass::visit(StatementId id, const ConvertLayout&) {
  const auto& choice = analysis_.solution.choices.at(id);
  if (choice.scratch.dims.empty()) return;
  through_shared(id, 0, {SharedPlace::Kind::convert_scratch, choice.scratch_offset});
}

void SyncPass::visit(StatementId id, const Reduce& node) {
  if (crosses_warps(registers(node.src), as_size(node.axis)))
    through_shared(id, 0, {SharedPlace::Kind::statement_scratch, id});
}

void SyncPass::visit(StatementId id, const Scan& node) {
  const int levels = warp_levels(registers(node.dst), as_size(node.axis));
  for (int level = 0; level < levels; ++level)
    through_shared(id, level, {SharedPlace::Kind::statement_scratch, id, level});
}

// Values are written to scratch memory and read by other threads.
void SyncPass::through_shared(StatementId id, int number, const SharedPlace& scratch) {
  before_write({id, SyncPart::inside, 2 * number}, scratch);
  before_read({id, SyncPart::inside, 2 * number + 1}, scratch);
}

void SyncPass::visit(StatementId id, const ClusterReduce& node) {
  const bool others_follow = loops_ > 0 || analysis_.cluster_reductions() > 2;
  if (now_.read_parts && others_follow) {
    const SyncPlace here{id, SyncPart::inside};
    const bool own_rows = warps_hold_own_rows(registers(node.dst), as_int(threads_));
    if (own_rows)
      note(here, {SyncKind::meet_warp});
    else
      meet(here);
    now_.read_parts = false;
  }
  reduced_ = node.dst;
  if (analysis_.tensor(node.dst).dtype != Dtype::f32) finish_cluster_reduce();
}

void SyncPass::finish_cluster_reduce() {
  if (reduced_) now_.read_parts = true;
  reduced_.reset();
}

// Matrix instructions.
void SyncPass::visit(StatementId id, const Mma& node) {
  const target::Instruction& row = *analysis_.instruction_of(id);
  if (row.method != Method::wgmma) return;
  const SyncPlace here{id, SyncPart::inside};
  for (const Tile* tile : {&node.a, &node.b}) {
    if (analysis_.tensor(tile->tensor).scope != Scope::shared) continue;
    before_async_read(here, tile->tensor);
    if (!is_stage(tile->tensor)) now_.read.insert(tensor_place(tile->tensor));
  }
  const auto sums = now_.in_flight.find(node.acc);
  const bool of_open_group = sums != now_.in_flight.end() && sums->second.behind < 0;
  const bool a_changed = !row.a_shared && now_.registers_changed;
  if (!now_.wgmma_open || !of_open_group || a_changed)
    note(here, {SyncKind::open_wgmma, 0, {node.acc}});
  now_.wgmma_open = true;
  now_.registers_changed = false;
  now_.in_flight[node.acc] = {true};
  if (!row.a_shared) now_.in_flight[node.a.tensor] = {false};
  if (!in_stage_) finish_wgmma(0, place({id, SyncPart::after}));
}

// Commits what was issued so far and waits until at most `groups` are in flight.
void SyncPass::finish_wgmma(int groups, std::vector<SyncAction>& to) {
  std::vector<SyncAction> actions;
  if (now_.wgmma_open) {
    actions.push_back({SyncKind::commit_wgmma});
    ++now_.groups;
    for (auto& [id, its] : now_.in_flight)
      ++its.behind;
  }
  if (now_.groups > groups) {
    SyncAction wait{SyncKind::wait_wgmma, groups};
    for (const auto& [id, its] : now_.in_flight)
      if (its.written) wait.tensors.push_back(id);
    actions.push_back(std::move(wait));
    now_.groups = groups;
  }
  std::erase_if(now_.in_flight, [&](const auto& its) { return its.second.behind >= groups; });
  now_.wgmma_open = false;
  to.insert(to.end(), actions.begin(), actions.end());
}

// Pipelines.
void SyncPass::visit(StatementId id, const Produce& node) {
  if (!analysis_.has_barriers(node.pipeline)) {
    const int after = analysis_.in_flight.at(id).most + 1;
    const bool overwrites_last = after >= program_.pipeline(node.pipeline).stages;
    if (overwrites_last && now_.consumed.contains(node.pipeline)) meet({id, SyncPart::inside});
  }
  in_stage_ = true;
  body(node.body);
  in_stage_ = false;
}

void SyncPass::visit(StatementId id, const Consume& node) {
  const bool around = std::exchange(in_stage_, true);
  auto& after = place({id, SyncPart::after});
  if (!analysis_.has_barriers(node.pipeline)) {
    meet({id, SyncPart::inside});
    body(node.body);
    if (now_.wgmma_open) finish_wgmma(0, after);
    now_.consumed.insert(node.pipeline);
  } else {
    body(node.body);
    finish_stage(node, after);
  }
  in_stage_ = around;
}

// Who fills lent registers again waits before that. A pipeline consumed within may have let wgmma
// run on.
void SyncPass::finish_stage(const Consume& node, std::vector<SyncAction>& after) {
  if (!use_in(program_, node).multiplies) return;
  const bool refilled = fills_again(program_, node.pipeline);
  if (now_.wgmma_open)
    finish_wgmma(node.mma_in_flight, after);
  else if (node.mma_in_flight == 0 && !now_.in_flight.empty() && refilled)
    finish_wgmma(0, after);
}

// Other blocks.
void SyncPass::visit(StatementId id, const Signal&) {
  if (!single_thread_) meet({id, SyncPart::inside});
  if (!now_.tma_reads.empty()) note({id, SyncPart::inside, 1}, {SyncKind::wait_tma_stores});
}

void SyncPass::visit(StatementId id, const Wait&) {
  if (!single_thread_) meet({id, SyncPart::inside});
}

// Threads of the role.
void SyncPass::meet(const SyncPlace& here) {
  note(here, {SyncKind::meet});
  now_.met();
}

void SyncPass::before_write(const SyncPlace& here, const SharedPlace& memory) {
  const auto tensor = static_cast<TensorId>(memory.number);
  const bool by_tma = memory.kind == SharedPlace::Kind::tensor && now_.tma_reads.contains(tensor);
  if (by_tma) {
    note(here, {SyncKind::wait_tma_reads});
    now_.tma_reads.clear();
  }
  if (by_tma || now_.written.contains(memory) || now_.read.contains(memory)) meet(here);
  now_.written.insert(memory);
  now_.unfenced.insert(memory);
}

void SyncPass::before_read(const SyncPlace& here, const SharedPlace& memory) {
  if (now_.written.contains(memory)) meet(here);
  now_.read.insert(memory);
}

// By tma or wgmma.
void SyncPass::before_async_read(const SyncPlace& here, TensorId tensor) {
  if (!now_.unfenced.contains(tensor_place(tensor))) return;
  note(here, {SyncKind::fence_async});
  now_.unfenced.clear();
  meet(here);
}

// Where actions go; nowhere while the states at loops' heads are being learnt.
std::vector<SyncAction>& SyncPass::place(const SyncPlace& at) {
  return recording_ ? out_.actions_[at] : discarded_;
}

Synchronization::Synchronization(const CudaAnalysis& analysis) {
  SyncPass(analysis, *this).run();
}

const std::vector<SyncAction>& Synchronization::at(const SyncPlace& place) const {
  static const std::vector<SyncAction> none;
  const auto found = actions_.find(place);
  return found == actions_.end() ? none : found->second;
}

const std::vector<SyncAction>& Synchronization::at_end_of(int role) const {
  static const std::vector<SyncAction> none;
  const auto found = ends_.find(role);
  return found == ends_.end() ? none : found->second;
}
}  // namespace warploom::codegen
