// SPDX-License-Identifier: Apache-2.0
// The whole program that owns the precompiled header.
int main() { return 0; }
