/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_CONTAINER_C_H
#define TEST_CONTAINER_C_H

#ifdef __cplusplus
extern "C" {
#endif

/* Reads packed weights "w", 2 x 32, and "bias" of two values. Returns 0, or the line that found something
 * else. */
int container_from_c(const char *path, float *values);

#ifdef __cplusplus
}
#endif

#endif
