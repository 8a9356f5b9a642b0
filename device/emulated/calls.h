// The emulated machine as the kernel's text sees it: what the inline functions of the interface
// call.
#pragma once
#include "kernel_head.h"
#include "tensor_map.h"

namespace wl::emu {
// The CUDA thread that runs now. The scheduler sets `self` before it resumes a fiber.
struct Self {
  int thread;
  int block[3];
  int cluster_rank;
  int cluster_size;
  int line;               // of the text: the call that is being carried out
  unsigned wgmma_fences;  // executed so far
  unsigned wgmma_waited;  // groups of the warpgroup known to be complete
};

extern Self* self;

// The last parameter of every function that touches the machine: made where the text calls, it
// notes the line.
#define WL_SITE ::wl::emu::Site site = ::wl::emu::Site()

struct Site {
  Site(int line = __builtin_LINE()) { self->line = line; }
};

// The state of one array of registers: which elements hold a value and which are lent to wgmma.
struct RegisterState {
  static constexpr int kOwners = 64;

  struct Owner {
    int begin;
    int end;
    unsigned group;  // lent until the thread has waited for this group
    bool input;      // A operand: reading stays legal
  };

  const char* name;
  int n;
  bool* filled;
  int owners = 0;
  unsigned touched = 0;  // 1 + number of wgmma fences at the last access by an ordinary instruction
  bool loose =
      false;  // that access may still be moved by the compiler: no wgmma_fence_regs came after it
  Owner owner[kOwners];
};

void register_bad(RegisterState& r, long long i,
                  bool write);  // says what is wrong with the access, if anything is
void registers_gone(RegisterState& r);

// A run of registers handed to a call: elements [at, at + count) of an array, or plain memory when
// state is null.
struct RegisterRun {
  void* data;
  RegisterState* state;
  int at;
  int count;
};

void load_global(RegisterRun dst, const void* p, int bytes);

struct Combine {  // an element of memory with another one; without a function that takes its place
  int bytes = 0;
  void (*into)(void* to, const void* with) = nullptr;
  void put(void* to, const void* from, int count) const;  // bytes
};

void store_global(void* p, RegisterRun src, int bytes, Combine combine);
void signal_flag(int* p, int n, WL_SITE);
void wait_flag(const int* p, int least, WL_SITE);
void move_shared(RegisterRun registers, unsigned addr, int bytes, bool cluster, bool store);
void store_async(unsigned addr, RegisterRun src, int bytes, unsigned bar);
unsigned mapa(unsigned addr, int rank, WL_SITE);
void fill_registers(RegisterRun dst, const void* value, int element_bytes);

void move_matrix(RegisterRun registers, unsigned addr, int count, bool transposed, bool store);
enum class Element { bf16, f16, tf32, e4m3, e5m2, int8 };
void mma_sync(RegisterRun d, RegisterRun a, RegisterRun b, Element type);
unsigned shuffle(unsigned bits, int lane);
void shuffle_registers(RegisterRun dst, RegisterRun src, int bytes, int lane, bool take);

void copy_async(unsigned smem, const void* g, int bytes, bool pred);
void cp_async_commit(WL_SITE);
void copy_async_wait(int n);

void barrier(int id, int threads);  // threads < 0: the whole block
void sync_warp(WL_SITE);
void cluster_sync(WL_SITE);

void mbarrier_init(unsigned addr, int count, WL_SITE);
void fence_mbarrier_init(WL_SITE);
void mbarrier_arrive(unsigned addr, int expect_bytes,
                     int rank);  // rank < 0: this block's own barrier
void mbarrier_wait(unsigned addr, unsigned parity, bool cluster);

struct Coordinates {  // of a box's first element
  int at[5];
  int rank;

  int operator[](int d) const { return at[d]; }
};

void tensor_load(unsigned smem, const TensorMap& map, unsigned bar, int mask, const Coordinates& c);
void tensor_store(const TensorMap& map, unsigned smem, const Coordinates& c, Combine combine);
void bulk_commit(WL_SITE);
void bulk_wait(int n, bool read);
void fence_async_shared(WL_SITE);

struct Wgmma {
  int n;
  Element type;
  bool transposed_a;
  bool transposed_b;
  bool a_in_registers;
  bool accumulate;
  // descriptors
  unsigned long long a;
  unsigned long long b;
  bool operator==(const Wgmma&) const = default;
};

void wgmma_fence(WL_SITE);
void wgmma_pin(RegisterRun registers);
void wgmma(const Wgmma& op, RegisterRun acc, RegisterRun a);
void wgmma_commit(WL_SITE);
void wgmma_wait(int n);

void set_registers(int count, bool increase);
void griddepcontrol_wait(WL_SITE);
void griddepcontrol_launch_dependents(WL_SITE);
}  // namespace wl::emu
