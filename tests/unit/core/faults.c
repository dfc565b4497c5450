// SPDX-License-Identifier: BSD-2-Clause
/* Fault injection (faults.h). */
#include "faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/slab.h"

#define ALLOCATIONS_MAX 100 /* more than any call makes */

struct faults faults;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void __real_free(void *p);
void *__real_core_slab_alloc(size_t size);
void __real_core_slab_free(void *p, size_t size);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);
int __real_eventfd(unsigned int value, int flags);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void __wrap_free(void *p);
void *__wrap_core_slab_alloc(size_t size);
void __wrap_core_slab_free(void *p, size_t size);
char *__wrap_strdup(const char *text);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);
int __wrap_eventfd(unsigned int value, int flags);

static bool fails_now(void)
{
	return faults.allocation && !--faults.allocation;
}

void *__wrap_malloc(size_t size)
{
	void *p = fails_now() ? NULL : __real_malloc(size);

	faults.live += p != NULL;
	return p;
}

void *__wrap_calloc(size_t count, size_t size)
{
	void *p = fails_now() ? NULL : __real_calloc(count, size);

	faults.live += p != NULL;
	return p;
}

void __wrap_free(void *p)
{
	faults.live -= p != NULL;
	__real_free(p);
}

void *__wrap_core_slab_alloc(size_t size)
{
	void *p = fails_now() ? NULL : __real_core_slab_alloc(size);

	faults.live += p != NULL;
	return p;
}

/* With CORE_SLAB_USES_MALLOC the real function calls free(), which counts. */
void __wrap_core_slab_free(void *p, size_t size)
{
	faults.live -= p != NULL && !CORE_SLAB_USES_MALLOC;
	__real_core_slab_free(p, size);
}

char *__wrap_strdup(const char *text)
{
	char *copy = __wrap_malloc(strlen(text) + 1);

	return copy ? strcpy(copy, text) : NULL;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg)
{
	return faults.thread ? EAGAIN : __real_pthread_create(thread, attr, fn, arg);
}

int __wrap_eventfd(unsigned int value, int flags)
{
	if (!faults.eventfd)
		return __real_eventfd(value, flags);
	errno = EMFILE;
	return -1;
}

void faults_clear(void)
{
	faults.allocation = 0;
	faults.thread = false;
	faults.eventfd = false;
}

/* Runs the call with that allocation failing. Returns false if it succeeded. */
static bool fails(DAT_RETURN (*call)(void), int allocation)
{
	int before = faults.live;
	DAT_RETURN ret;

	faults.allocation = allocation;
	ret = call();
	faults.allocation = 0;
	if (ret == DAT_SUCCESS)
		return false;
	assert_int_equal(DAT_GET_TYPE(ret), DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(faults.live, before);
	return true;
}

void faults_each(DAT_RETURN (*make)(void), void (*undo)(void))
{
	int before = faults.live;
	int n = 1;

	while (fails(make, n) && n < ALLOCATIONS_MAX)
		n++;
	assert_true(n > 1 && n < ALLOCATIONS_MAX);
	undo();
	assert_int_equal(faults.live, before);
}

void faults_each_unchanged(DAT_RETURN (*change)(void), void (*check)(void))
{
	int n = 1;

	while (fails(change, n) && n < ALLOCATIONS_MAX) {
		check();
		n++;
	}
	assert_true(n > 1 && n < ALLOCATIONS_MAX);
}
