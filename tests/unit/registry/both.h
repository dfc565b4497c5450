// SPDX-License-Identifier: BSD-2-Clause
/* The calls of DAT 2.0 that test_both.c makes: one source file cannot make those of both. */
#ifndef TESTS_REGISTRY_BOTH_H
#define TESTS_REGISTRY_BOTH_H

struct both_calls {
	unsigned int (*open)(const char *name, void **ia_out);
	unsigned int (*close)(void *ia);
};

#endif
