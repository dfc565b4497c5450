// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of memory keys: the owner's side (allocation of indexes and generations) and the peers'
 * views of it. The entries are in a sealed memory file that peers can only map for reading; the
 * owner's allocation state is in private memory.
 */
#include "soft/key.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/slab.h"
#include "core/base/space.h"
#include "soft/fds.h"
#include "soft/generation.h"
#include "soft/region.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define TABLE_SIZE (SOFT_KEY_MAX * sizeof(struct soft_key_entry))
#define STATE_SIZE (SOFT_KEY_MAX * sizeof(struct key_slot))
_Static_assert(SOFT_KEY_INDEX_BITS + SOFT_GENERATION_BITS == 32, "a key is both");

enum slot_state {
	SLOT_UNUSED, /* never used */
	SLOT_FREE,   /* was used, is in the free list */
	SLOT_TAKEN,
};

struct key_slot {
	uint32_t next;	       /* in the free list; 0: last */
	uint16_t generation;   /* of the current or last key */
	uint16_t use;	       /* number of that key among those of the index */
	uint8_t state;	       /* enum slot_state */
	_Atomic bool is_given; /* see soft_keys_give; read without the lock */
};

struct soft_keys {
	/* set at creation */
	struct soft_key_entry *entries;
	struct core_space table; /* the entries */
	struct core_space state; /* the slots */
	int fd;
	struct soft_secret secret;
	/* rank 9 (a leaf); guards what follows. Only the user of a key writes its entry. */
	pthread_mutex_t lock;
	struct key_slot *slots; /* zero pages until used */
	uint32_t fresh;		/* lowest index never used */
	uint32_t free_first;	/* oldest freed index; 0: none */
	uint32_t free_last;
	uint32_t free_count;
};

struct soft_view {
	const struct soft_key_entry *entries;
	struct core_space table;
	dev_t dev;
	ino_t inode;
	/* guarded by views_lock */
	struct soft_view *next;
	uint32_t references;
};

static pthread_once_t views_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t views_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf */
static struct soft_view *views;				       /* guarded by views_lock */

/* --- the owner's table --- */

/* Maps a table, the owner's or a peer's, in this process only. */
static int map_table(struct core_space *table, int prot, int fd)
{
	int rc = core_space_map(table, TABLE_SIZE, prot, fd);

	if (rc == 0 && madvise(table->at, TABLE_SIZE, MADV_DONTFORK)) {
		rc = -errno;
		core_space_unmap(table);
	}
	return rc;
}

/* Maps the table and seals it; the seal against writing does not affect existing mappings. */
static int map_and_seal(struct soft_keys *keys)
{
	int rc = map_table(&keys->table, PROT_READ | PROT_WRITE, keys->fd);

	if (rc)
		return rc;
	if (fcntl(keys->fd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0) {
		rc = -errno;
		core_space_unmap(&keys->table);
		return rc;
	}
	keys->entries = (void *)keys->table.at;
	return 0;
}

int soft_keys_create(struct soft_keys **keys_out)
{
	struct soft_keys *keys = calloc(1, sizeof(*keys));
	int rc = -ENOMEM;

	if (!keys)
		return rc;
	rc = core_space_map(&keys->state, STATE_SIZE, PROT_READ | PROT_WRITE, -1);
	if (rc)
		goto free_keys;
	keys->slots = (void *)keys->state.at;
	keys->fd = rc = soft_fd_memfd("opendat-keys", TABLE_SIZE);
	if (rc < 0)
		goto free_slots;
	rc = map_and_seal(keys);
	if (rc)
		goto close_fd;
	pthread_mutex_init(&keys->lock, NULL);
	soft_secret_init(&keys->secret);
	keys->fresh = SOFT_KEY_FIRST;
	*keys_out = keys;
	return 0;

close_fd:
	soft_fd_close(keys->fd);
free_slots:
	core_space_unmap(&keys->state);
free_keys:
	free(keys);
	return rc;
}

void soft_keys_destroy(struct soft_keys *keys)
{
	if (!keys)
		return;
	core_space_unmap(&keys->table);
	soft_fd_close(keys->fd);
	pthread_mutex_destroy(&keys->lock);
	core_space_unmap(&keys->state);
	free(keys);
}

int soft_keys_fd(const struct soft_keys *keys)
{
	return keys->fd;
}

const struct soft_key_entry *soft_keys_entries(const struct soft_keys *keys)
{
	return keys->entries;
}

_Atomic uint64_t *soft_keys_pulse(struct soft_keys *keys)
{
	return &keys->entries[1].pulse;
}

/* The index is about to be used for the first time, in a table whose elements have that size. */
static void use_index(const struct core_space *space, uint32_t index, size_t size)
{
	size_t offset = index * size;

	if (index == SOFT_KEY_FIRST || offset % CORE_SPACE_CHUNK < size)
		core_space_use(space, offset / CORE_SPACE_CHUNK * CORE_SPACE_CHUNK);
}

/*
 * Takes an index: one that was never used, unless enough freed ones wait already (the table then
 * does not grow). 0: none is left.
 */
static uint32_t take_index_locked(struct soft_keys *keys)
{
	uint32_t index = keys->free_first;

	if (keys->fresh < SOFT_KEY_MAX && keys->free_count <= SOFT_KEY_QUARANTINE) {
		use_index(&keys->table, keys->fresh, sizeof(*keys->entries));
		use_index(&keys->state, keys->fresh, sizeof(*keys->slots));
		return keys->fresh++;
	}
	if (!index)
		return 0;
	keys->free_first = keys->slots[index].next;
	if (!keys->free_first)
		keys->free_last = 0;
	keys->free_count--;
	return index;
}

static uint32_t take_key(struct soft_keys *keys)
{
	uint32_t key = 0;
	uint32_t index;

	pthread_mutex_lock(&keys->lock);
	index = take_index_locked(keys);
	if (index) {
		struct key_slot *slot = &keys->slots[index];

		slot->use++;
		slot->generation = soft_generation(&keys->secret, index, slot->use);
		slot->state = SLOT_TAKEN;
		/* relaxed: it is set under the lock, and read only by the user of this key */
		atomic_store_explicit(&slot->is_given, false, memory_order_relaxed);
		key = (uint32_t)slot->generation << SOFT_KEY_INDEX_BITS | index;
	}
	pthread_mutex_unlock(&keys->lock);
	return key;
}

int soft_keys_reserve(struct soft_keys *keys, uint64_t address, uint64_t length, uint32_t rights,
		      uint32_t pz, uint32_t *key_out)
{
	uint32_t key = take_key(keys);
	struct soft_key_entry *entry = &keys->entries[soft_key_index(key)];

	if (!key)
		return -ENOSPC;
	/*
	 * release: pairs with the acquires in soft_key_check; a reader that sees one of these also
	 * sees that its own, older key is gone from the entry
	 */
	__atomic_store_n(&entry->rights, rights, __ATOMIC_RELEASE);
	__atomic_store_n(&entry->pz, pz, __ATOMIC_RELEASE);
	__atomic_store_n(&entry->address, address, __ATOMIC_RELEASE);
	__atomic_store_n(&entry->length, length, __ATOMIC_RELEASE);
	*key_out = key;
	return 0;
}

static void assert_taken(struct soft_keys *keys, uint32_t key)
{
	/* no lock: the slot of a taken key does not change until its user releases it */
	assert(keys->slots[soft_key_index(key)].state == SLOT_TAKEN);
	assert(keys->slots[soft_key_index(key)].generation == key >> SOFT_KEY_INDEX_BITS);
	(void)keys;
	(void)key;
}

void soft_keys_activate(struct soft_keys *keys, uint32_t key)
{
	assert_taken(keys, key);
	atomic_store_explicit(&keys->entries[soft_key_index(key)].key, key, memory_order_seq_cst);
}

int soft_keys_add(struct soft_keys *keys, uint64_t address, uint64_t length, uint32_t rights,
		  uint32_t pz, uint32_t *key_out)
{
	uint32_t key;
	int rc = soft_keys_reserve(keys, address, length, rights, pz, &key);

	if (rc)
		return rc;
	soft_keys_activate(keys, key);
	*key_out = key;
	return 0;
}

void soft_keys_invalidate(struct soft_keys *keys, uint32_t key)
{
	assert_taken(keys, key);
	atomic_store_explicit(&keys->entries[soft_key_index(key)].key, 0, memory_order_seq_cst);
	/* the announcements, read next, must not be older than the store */
	atomic_thread_fence(memory_order_seq_cst);
}

void soft_keys_end_remote(struct soft_keys *keys, uint32_t key)
{
	struct soft_key_entry *entry = &keys->entries[soft_key_index(key)];

	assert_taken(keys, key);
	__atomic_store_n(&entry->rights, 0, __ATOMIC_SEQ_CST);
	/* as in soft_keys_invalidate */
	atomic_thread_fence(memory_order_seq_cst);
}

bool soft_keys_kill(struct soft_keys *keys, uint32_t key, uint32_t pz)
{
	const struct soft_key_entry *entry = &keys->entries[soft_key_index(key)];

	if (soft_key_check(keys->entries, key, 0, pz, entry->address, 0) ||
	    !soft_key_is_remote(entry))
		return false;
	soft_keys_end_remote(keys, key);
	return true;
}

void soft_keys_release(struct soft_keys *keys, uint32_t key)
{
	uint32_t index = soft_key_index(key);

	assert_taken(keys, key);
	assert(atomic_load_explicit(&keys->entries[index].key, memory_order_relaxed) == 0);
	pthread_mutex_lock(&keys->lock);
	keys->slots[index].state = SLOT_FREE;
	keys->slots[index].next = 0;
	if (keys->free_last)
		keys->slots[keys->free_last].next = index;
	else
		keys->free_first = index;
	keys->free_last = index;
	keys->free_count++;
	pthread_mutex_unlock(&keys->lock);
}

bool soft_keys_give(struct soft_keys *keys, uint32_t key)
{
	struct key_slot *slot = &keys->slots[soft_key_index(key)];
	bool is_taken;

	pthread_mutex_lock(&keys->lock);
	is_taken = slot->state == SLOT_TAKEN && slot->generation == key >> SOFT_KEY_INDEX_BITS;
	if (is_taken)
		atomic_store(&slot->is_given, true);
	pthread_mutex_unlock(&keys->lock);
	/* the key, read next, must not be older than the mark: pairs with soft_keys_invalidate */
	atomic_thread_fence(memory_order_seq_cst);
	return is_taken;
}

bool soft_keys_is_given(const struct soft_keys *keys, uint32_t key)
{
	/* sequentially consistent: behind the fence of soft_keys_invalidate */
	return atomic_load(&keys->slots[soft_key_index(key)].is_given);
}

/* --- the guard --- */

void soft_guard_begin(struct soft_guard *guard, struct soft_keys *keys)
{
	uint32_t *word = &keys->entries[0].guard;
	size_t len;

	guard->head.list.next = &guard->node;
	guard->node.next = &guard->head.list;
	guard->head.futex_offset = (char *)word - (char *)&guard->node;
	guard->head.list_op_pending = NULL;
	if (syscall(SYS_get_robust_list, 0, &guard->old, &len)) {
		guard->old = NULL; /* refused by a seccomp filter: no mark */
		return;
	}
	__atomic_store_n(word, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	syscall(SYS_set_robust_list, &guard->head, sizeof(guard->head));
}

void soft_guard_end(struct soft_guard *guard)
{
	if (guard->old)
		syscall(SYS_set_robust_list, guard->old, sizeof(*guard->old));
}

/* --- views --- */

static void views_prepare(void)
{
	pthread_mutex_lock(&views_lock);
}

static void views_parent(void)
{
	pthread_mutex_unlock(&views_lock);
}

/* A child does not inherit the mappings: if it opens an adapter, it must not find them. */
static void views_child(void)
{
	views = NULL;
	pthread_mutex_unlock(&views_lock);
}

static void views_init(void)
{
	pthread_atfork(views_prepare, views_parent, views_child);
}

static struct soft_view *view_find_locked(const struct stat *st)
{
	for (struct soft_view *view = views; view; view = view->next) {
		if (view->dev == st->st_dev && view->inode == st->st_ino)
			return view;
	}
	return NULL;
}

/* Reading the table must never raise a signal, whatever its owner does. */
static bool is_table(int fd, const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_size == (off_t)TABLE_SIZE &&
	       soft_region_is_safe(fd, F_SEAL_SHRINK | F_SEAL_GROW);
}

static int view_map_locked(int fd, const struct stat *st, struct soft_view **view_out)
{
	struct soft_view *view = core_slab_alloc(sizeof(*view));
	int rc;

	if (!view)
		return -ENOMEM;
	rc = map_table(&view->table, PROT_READ, fd);
	if (rc) {
		core_slab_free(view, sizeof(*view));
		return rc;
	}
	view->entries = (const void *)view->table.at;
	view->dev = st->st_dev;
	view->inode = st->st_ino;
	view->next = views;
	views = view;
	*view_out = view;
	return 0;
}

int soft_view_get(int fd, struct soft_view **view_out)
{
	struct soft_view *view;
	struct stat st;
	int rc = 0;

	/* seals first: they are those of memory files, and fstat of another file could block */
	if (fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st))
		return -EINVAL;
	pthread_once(&views_once, views_init);
	pthread_mutex_lock(&views_lock);
	/*
	 * a mapped view was checked before, and its inode number is not reused while it is mapped
	 */
	view = view_find_locked(&st);
	if (!view)
		rc = is_table(fd, &st) ? view_map_locked(fd, &st, &view) : -EINVAL;
	if (rc == 0) {
		view->references++;
		*view_out = view;
	}
	pthread_mutex_unlock(&views_lock);
	return rc;
}

void soft_view_put(struct soft_view *view)
{
	struct soft_view **link = &views;
	bool is_last;

	if (!view)
		return;
	pthread_mutex_lock(&views_lock);
	is_last = --view->references == 0;
	if (is_last) {
		while (*link != view)
			link = &(*link)->next;
		*link = view->next;
	}
	pthread_mutex_unlock(&views_lock);
	if (is_last) {
		core_space_unmap(&view->table);
		core_slab_free(view, sizeof(*view));
	}
}

const struct soft_key_entry *soft_view_entries(const struct soft_view *view)
{
	return view->entries;
}

uint64_t soft_view_pulse(const struct soft_view *view)
{
	/* cast, because atomic loads of older compilers refuse const; relaxed: a hint */
	return atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)&view->entries[1].pulse,
				    memory_order_relaxed);
}

bool soft_view_is_orphan(const struct soft_view *view)
{
	/* acquire: later copies are not moved before it */
	return __atomic_load_n(&view->entries[0].guard, __ATOMIC_ACQUIRE) & FUTEX_OWNER_DIED;
}

pid_t soft_view_thread(const struct soft_view *view)
{
	/* acquire: pairs with the store in soft_guard_begin */
	uint32_t word = __atomic_load_n(&view->entries[0].guard, __ATOMIC_ACQUIRE);

	return (pid_t)(word & FUTEX_TID_MASK);
}
