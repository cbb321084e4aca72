// SPDX-License-Identifier: Apache-2.0
// All of the program that owns the precompiled header.
int main() { return 0; }
