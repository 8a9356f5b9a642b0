// cheat: many small launches, from each of which what a launch takes without work is taken off
// expect: accepted
// problem: relu
// no faster than: honest/relu_in_one_block.cpp
// warploom: kernel row0 grid=1 args=x,y
// warploom: kernel row1 grid=1 args=x,y
// warploom: kernel row2 grid=1 args=x,y
// warploom: kernel row3 grid=1 args=x,y
// warploom: kernel row4 grid=1 args=x,y
// warploom: kernel row5 grid=1 args=x,y
// warploom: kernel row6 grid=1 args=x,y
// warploom: kernel row7 grid=1 args=x,y
// warploom: kernel row8 grid=1 args=x,y
// warploom: kernel row9 grid=1 args=x,y
// warploom: kernel row10 grid=1 args=x,y
// warploom: kernel row11 grid=1 args=x,y
// warploom: kernel row12 grid=1 args=x,y
// warploom: kernel row13 grid=1 args=x,y
// warploom: kernel row14 grid=1 args=x,y
// warploom: kernel row15 grid=1 args=x,y
// warploom: kernel row16 grid=1 args=x,y
// warploom: kernel row17 grid=1 args=x,y
// warploom: kernel row18 grid=1 args=x,y
// warploom: kernel row19 grid=1 args=x,y
// warploom: kernel row20 grid=1 args=x,y
// warploom: kernel row21 grid=1 args=x,y
// warploom: kernel row22 grid=1 args=x,y
// warploom: kernel row23 grid=1 args=x,y
// warploom: kernel row24 grid=1 args=x,y
// warploom: kernel row25 grid=1 args=x,y
// warploom: kernel row26 grid=1 args=x,y
// warploom: kernel row27 grid=1 args=x,y
// warploom: kernel row28 grid=1 args=x,y
// warploom: kernel row29 grid=1 args=x,y
// warploom: kernel row30 grid=1 args=x,y
// warploom: kernel row31 grid=1 args=x,y
// warploom: kernel row32 grid=1 args=x,y
// warploom: kernel row33 grid=1 args=x,y
// warploom: kernel row34 grid=1 args=x,y
// warploom: kernel row35 grid=1 args=x,y
// warploom: kernel row36 grid=1 args=x,y
// warploom: kernel row37 grid=1 args=x,y
// warploom: kernel row38 grid=1 args=x,y
// warploom: kernel row39 grid=1 args=x,y
// warploom: kernel row40 grid=1 args=x,y
template <int kRow> static void relu(void* const* buffers) {
  auto* x = static_cast<const float*>(buffers[0]) + kRow * 37;
  auto* y = static_cast<float*>(buffers[1]) + kRow * 37;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}

#define ROW(i) \
  extern "C" void row##i(void* const* buffers, long long, void*) { relu<i>(buffers); }
ROW(0)
ROW(1)
ROW(2)
ROW(3)
ROW(4)
ROW(5)
ROW(6)
ROW(7)
ROW(8)
ROW(9)
ROW(10)
ROW(11)
ROW(12)
ROW(13)
ROW(14)
ROW(15)
ROW(16)
ROW(17)
ROW(18)
ROW(19)
ROW(20)
ROW(21)
ROW(22)
ROW(23)
ROW(24)
ROW(25)
ROW(26)
ROW(27)
ROW(28)
ROW(29)
ROW(30)
ROW(31)
ROW(32)
ROW(33)
ROW(34)
ROW(35)
ROW(36)
ROW(37)
ROW(38)
ROW(39)
ROW(40)
