// control: a ReLU whose loop is entered in its middle
// expect: accepted
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void*) {
  const float* from = (const float*)buffers[0] + row * 37;
  float* to = (float*)buffers[1] + row * 37;
  int rounds = (37 + 7) / 8;
#define STEP *to++ = *from > 0 ? *from : 0, ++from
  switch (37 % 8) {
    case 0: do { STEP; [[fallthrough]];
    case 7: STEP; [[fallthrough]];
    case 6: STEP; [[fallthrough]];
    case 5: STEP; [[fallthrough]];
    case 4: STEP; [[fallthrough]];
    case 3: STEP; [[fallthrough]];
    case 2: STEP; [[fallthrough]];
    case 1: STEP;
    } while (--rounds > 0);
  }
}
