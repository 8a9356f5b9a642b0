// cheat: no-op reading freed reference output: hopes that the output's memory held the answer before
// expect: candidate-unwritten
// problem: softmax
// warploom: kernel softmax grid=33 threads=128 args=x,y
extern "C" __global__ void softmax(const float*, float*) {}
