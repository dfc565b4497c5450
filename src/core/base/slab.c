// SPDX-License-Identifier: BSD-2-Clause
/* The object allocator (slab.h). */
#include "core/base/slab.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCK_SIZE (64u * 1024u)
#define OBJECT_MAX 4096u /* larger objects get a mapping of their own */
#define RESTS 4u	 /* blocks that objects are taken from at a time */

struct free_object {
	struct free_object *next;
};

/* A leaf lock: its holder calls only mmap. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_fork_handler; /* set once, by slab_init */
/* guarded by `lock` */
/* indexed by size / CORE_SLAB_ALIGN */
static struct free_object *free_objects[OBJECT_MAX / CORE_SLAB_ALIGN + 1];
static struct rest {
	unsigned char *at;
	size_t size;
} rests[RESTS]; /* the unused parts of blocks */

/* Another thread may have held the lock at the fork, so the lists may be inconsistent. The child
 * abandons the free memory. */
static void slab_in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(free_objects, 0, sizeof(free_objects));
	memset(rests, 0, sizeof(rests));
}

static void slab_init(void)
{
	has_fork_handler = !pthread_atfork(NULL, NULL, slab_in_child);
}

static size_t round_up(size_t size)
{
	return (size + CORE_SLAB_ALIGN - 1) & ~(size_t)(CORE_SLAB_ALIGN - 1);
}

static void *map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* The smallest rest of at least that size, or NULL. */
static struct rest *find_rest_locked(size_t size)
{
	struct rest *found = NULL;
	unsigned i;

	for (i = 0; i < RESTS; i++)
		if (rests[i].size >= size && (!found || rests[i].size < found->size))
			found = &rests[i];
	return found;
}

/*
 * If no rest is large enough, a new block takes the place of the smallest one, which is abandoned.
 * Small objects use up the rests, so that little is.
 */
static void *slab_carve_locked(size_t size)
{
	struct rest *rest = find_rest_locked(size);
	unsigned char *p;

	if (!rest) {
		p = map(BLOCK_SIZE);
		if (!p)
			return NULL;
		rest = find_rest_locked(0);
		*rest = (struct rest){.at = p, .size = BLOCK_SIZE};
	}
	p = rest->at;
	rest->at += size;
	rest->size -= size;
	return p;
}

static void *take(size_t size)
{
	struct free_object **list = &free_objects[size / CORE_SLAB_ALIGN];
	struct free_object *object;

	pthread_once(&once, slab_init);
	if (!has_fork_handler) /* the lists of a child could be inconsistent */
		return NULL;
	pthread_mutex_lock(&lock);
	object = *list;
	if (object)
		*list = object->next;
	else
		object = slab_carve_locked(size);
	pthread_mutex_unlock(&lock);
	return object;
}

void *core_slab_alloc(size_t size)
{
	void *p;

	size = round_up(size);
	if (size > OBJECT_MAX && !CORE_SLAB_USES_MALLOC)
		return map(size);
	p = CORE_SLAB_USES_MALLOC ? aligned_alloc(CORE_SLAB_ALIGN, size) : take(size);
	return p ? memset(p, 0, size) : NULL;
}

void core_slab_free(void *p, size_t size)
{
	struct free_object *object = p;
	struct free_object **list;

	size = round_up(size);
	if (!p)
		return;
	if (CORE_SLAB_USES_MALLOC) {
		free(p);
		return;
	}
	if (size > OBJECT_MAX) {
		munmap(p, size);
		return;
	}
	list = &free_objects[size / CORE_SLAB_ALIGN];
	pthread_mutex_lock(&lock);
	object->next = *list;
	*list = object;
	pthread_mutex_unlock(&lock);
}
