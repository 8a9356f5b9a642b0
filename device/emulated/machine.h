// The emulated GPU while one launch runs. Internal: kernels reach it through calls.h, users through
// emulator.h.
#pragma once
#include <fmt/format.h>
#include <boost/context/fiber.hpp>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include "banks.h"
#include "base/random.h"
#include "calls.h"
#include "shadow.h"

namespace wl::emu {
using warploom::emulator::Launch;
using warploom::emulator::Report;
using warploom::emulator::Timing;

struct Cta;
struct Warp;
struct Warpgroup;

// The asynchronous operations of one thread, in groups: cp.async or bulk.
struct Groups {
  struct Op {
    Epoch group;
    std::function<void()> carry_out;
  };

  std::vector<Op> ops;  // not yet carried out, oldest first
  Epoch committed = 0;  // groups
  Epoch waited = 0;     // groups known to be complete
  Epoch last_used = 0;  // the newest group with an operation in it
  int last_line = 0;

  void add(std::function<void()> carry_out);  // to the open group; it may take place at once
  void flush(Epoch up_to);                    // carries out the operations of groups up to that one
  Epoch flush_but(int newest);  // all but the newest committed ones; how many that makes
};

struct Thread {
  Self self{};  // first, so that a Self* is a Thread*
  Cta* cta = nullptr;
  Warp* warp = nullptr;
  Warpgroup* group = nullptr;
  int actor = 0;
  Clock base;

  enum Own : uint8_t { kItself, kCopies, kBulkReads, kBulkWrites };

  Private own[4];  // of the asynchronous ones once it has used them
  Groups copies;
  Groups stores;
  Epoch bulk_read_waited = 0;
  uint64_t wgmma_ops = 0;   // handed over so far
  Epoch wgmma_groups = 0;   // committed
  bool wgmma_open = false;  // an operation since the last commit
  int wgmma_line = 0;
  bool dependency_waited = false;
  bool done = false;
  bool queued = false;  // among the ready
  // Blocked: on what, for the deadlock report.
  const char* waiting = nullptr;
  unsigned wait_addr = 0;
  unsigned wait_parity = 0;
  boost::context::fiber fiber;

  View view() const { return View(base, own); }

  Access access() const { return access_by(actor, own[kItself].known, self.line); }

  int actor_of(Own part, const char* kind);
};

struct Warp {
  Thread* lane[32] = {};
  int size = 0;
  // A collective under way.
  int arrived = 0;
  const char* what = nullptr;
  int line = 0;

  struct Argument {
    RegisterRun r[3];
    unsigned value;
  } argument[32];

  std::vector<Thread*> waiting;
  ClockBuilder clock;  // of sync_warp
  int registers = 0;
};

struct WgmmaOp {
  Wgmma op;
  Epoch group = 0;
  int line = 0;
  int here = 0;               // threads that have handed over
  std::vector<Clock> clocks;  // the different clocks of those threads
  RegisterRun acc[128];
  RegisterRun a[128];
};

struct Warpgroup {
  int actor = 0;
  Cta* cta = nullptr;
  std::deque<WgmmaOp> ops;
  uint64_t first = 0;               // number of ops[0]
  std::vector<uint64_t> group_end;  // ops in groups 1..g
  std::vector<Thread*> waiting;
};

struct Mbarrier {  // one in shared memory, or one of threads: a block's by their numbers, the
                   // cluster's
  int count = 0;
  int pending = 0;
  bool everyone = false;  // of all threads alive
  int64_t tx = 0;
  unsigned phase = 0;
  int actor = 0;  // of the copies that complete here
  int init_actor = 0;
  int init_line = 0;
  Epoch init_epoch = 0;
  bool published = false;  // fence_mbarrier_init came after
  // an arrival came from another block
  bool gathers_remote = false;
  bool completed_remote = false;
  ClockBuilder gathering;
  Clock completed;
  std::vector<Thread*> waiters;  // each woken once, when the phase it saw under way completes
  // phases below these
  unsigned copied_phase = 0;
  unsigned waited_phase = 0;
  int copy_line = 0;
};

struct Cta {
  int rank = 0;
  int block[3] = {};
  Mbarrier* cluster_barrier = nullptr;
  int alive = 0;
  std::vector<uint8_t> memory;  // by address
  Shadow shadow;
  std::map<unsigned, Mbarrier> barriers;  // by address
  Mbarrier named[16];
  std::vector<Thread*> threads;
  std::deque<Warp> warps;
  std::deque<Warpgroup> groups;
  int registers_free = 0;
  std::vector<Thread*> register_waiters;
  ClockBuilder exit_clock;

  struct Remote {
    Epoch epoch;
    int line;
  };

  std::map<int, Remote> remote;  // the newest access by each actor of another block
};

struct Signal {
  int value;   // of the flag from then on
  Clock what;  // is handed on by this signal and those before it
};

struct GlobalRange {
  uintptr_t begin;
  uintptr_t end;
  const warploom::emulator::Allocation* allocation;
  Shadow shadow;  // empty where nothing is to be checked
};

// A copy under way whose bytes complete on a barrier.
struct PendingCopy {
  std::function<void()> carry_out;
  Mbarrier* bar;
  unsigned phase;
  int64_t bytes;
  int line;
  Thread* issuer;
};

struct Actor {
  const char* kind;
  int number;  // of the thread, the warpgroup; of loads the barrier's address
  Cta* cta;
};

class Machine {
 public:
  explicit Machine(const Launch& launch);
  Report run();

  // Threads
  void suspend(const char* what, std::vector<Thread*>* among = nullptr, unsigned addr = 0,
               unsigned parity = 0);

  void wake(Thread* t, bool before_others = false) {
    const auto place = before_others ? ready_.begin() : ready_.end();
    if (!t->queued && !t->done) ready_.insert(place, t);
    t->queued = true;
  }

  void wake_all(std::vector<Thread*>& waiting) {
    for (Thread* waiter : std::exchange(waiting, {}))
      wake(waiter);
  }

  bool chance(unsigned one_in) { return next_random() % one_in == 0; }

  uint64_t next_random() { return random_.next(); }

  bool effect_now(unsigned one_in = 2) {  // does an asynchronous effect take place at issue?
    return timing() == Timing::early || (timing() == Timing::random && chance(one_in));
  }

  Timing timing() const { return launch_.options.timing; }

  const Launch& launch() const { return launch_; }

  // Clocks
  int add_actor(const char* kind, int number, Cta* cta) {
    actors_.push_back({kind, number, cta});
    return static_cast<int>(actors_.size()) - 1;
  }

  void release(ClockBuilder& to, Thread& t);

  void acquire(Thread& t, const Clock& from) { t.base = join(t.base, from); }

  // Reports
  // Of the current thread, where it is; beside: with the line of the other access.
  template <class... Args>
  void hazard(const char* kind, fmt::format_string<Args...> message, Args&&... args) {
    hazard_of(current, kind, fmt::format(message, std::forward<Args>(args)...), self->line);
  }

  template <class... Args>
  void hazard_beside(int other_line, const char* kind, fmt::format_string<Args...> message,
                     Args&&... args) {
    hazard_of(current, kind, fmt::format(message, std::forward<Args>(args)...), self->line,
              other_line);
  }

  void hazard_of(const Thread* t, const char* kind, std::string message, int line,
                 int other_line = 0);
  std::string name_of(int actor) const;

  // Shared memory
  Cta* locate(unsigned& addr, int bytes, bool cluster,
              const char* what);  // null and a hazard if out of range
  uint8_t* access_shared(Thread& t, unsigned addr, int bytes, bool write, bool cluster,
                         const char* what);

  uint8_t* memory(Cta& cta, unsigned addr) { return cta.memory.data() + addr; }

  void touch(Shadow& shadow, size_t at, int bytes, bool write, const View& view, const Access& me,
             const char* what);

  // Global memory
  GlobalRange* find(const void* p, size_t bytes, bool write, const char* what);
  void touch_global(GlobalRange& g, const void* p, int bytes, bool write, Access me,
                    bool combine = false);

  // Warps
  bool meet(const char* what, RegisterRun a = {}, RegisterRun b = {}, RegisterRun c = {},
            unsigned value = 0);
  void part(Warp& w);

  Mbarrier* barrier(Cta& cta, unsigned addr, const char* what, bool remote_or_async);
  void complete_if_done(Mbarrier& b, int line);
  void arrive_and_wait(Mbarrier& b, const char* what, unsigned addr = 0);

  // Notes the write of a copy that completes on the barrier, and carries it out now or later.
  void copy_to(Cta& cta, unsigned at, int bytes, Mbarrier& b, bool by_engine, const char* what,
               std::function<void()> carry_out);
  void finish_copy(size_t i);

  Thread* current = nullptr;
  boost::context::fiber main;  // that resumes them
  std::vector<PendingCopy> pending;
  Banks banks;
  bool unwinding = false;
  std::vector<Cta> ctas;                            // those that run, cluster by cluster: a wave
  std::map<const int*, std::vector<Signal>> flags;  // by address, in the order of the signals
  std::vector<Thread*> flag_waiters;

 private:
  void start_wave(int first, int clusters);
  void run_wave();
  void thread_exits(Thread& t);
  void report_deadlock();
  std::string state_of(const Thread& t) const;

  Launch launch_;
  Report report_;
  warploom::Random random_;
  std::deque<Thread*> ready_;
  std::deque<Thread> threads_;
  std::vector<Mbarrier> cluster_barriers_;
  uint16_t wave_ = 0;  // number of the one that runs, from 1
  std::vector<Actor> actors_;
  std::vector<GlobalRange> ranges_;
  size_t last_range_ = 0;
  int alive_ = 0;
  bool stopped_ = false;
};

extern Machine* machine;

inline Thread& me() {
  return *machine->current;
}

void drop_owners(RegisterState& r, const auto& given_back) {
  const auto* const end = std::remove_if(r.owner, r.owner + r.owners, given_back);
  r.owners = static_cast<int>(end - r.owner);
}

// Registers used by an instruction: in range, holding a value when read, not lent to wgmma.
bool use_registers(const RegisterRun& r, bool write);

// The shared-memory layouts of TMA and of wgmma: mode 0 none, 1 128 bytes, 2 64, 3 32.
inline int swizzle_width(int mode) {
  return mode ? 256 >> mode : 16;
}

inline unsigned swizzled(unsigned a, int mode) {
  if (mode == 1) return swizzle<3, 4, 3>(a);
  if (mode == 2) return swizzle<2, 4, 3>(a);
  return mode == 3 ? swizzle<1, 4, 3>(a) : a;
}

constexpr int bytes_of(Element e) {
  if (e <= Element::f16) return 2;
  return e == Element::tf32 ? 4 : 1;
}

void decode(Element e, const void* data, int count,
            float* out);  // int8 too: its values are exact in float
// One lane's A fragment, four 32-bit registers, into its places of a tile of 16 rows of 32 bytes.
void place_a(Element e, const void* registers, int lane, float* tile);

// c[0..n) += sum over k of a[k] * b[k * n + 0..n) of small whole numbers; n a multiple of 8.
void accumulate_row(float* c, const float* a, const float* b, int n, int k);

// Adds a product to sums in registers, each given with a float of `multiply`'s. Integers are summed
// apart, exactly in float.
void add_product(Element type, bool accumulate, const auto& for_each_sum, const auto& multiply) {
  const bool integers = type == Element::int8;
  for_each_sum([&](void* in_register, float& sum) {
    sum = accumulate && !integers ? *static_cast<float*>(in_register) : 0.0f;
  });
  multiply();
  for_each_sum([&](void* in_register, float& sum) {
    if (!integers) {
      *static_cast<float*>(in_register) = sum;
      return;
    }
    int& whole = *static_cast<int*>(in_register);
    whole = (accumulate ? whole : 0) + static_cast<int>(sum);
  });
}
}  // namespace wl::emu
