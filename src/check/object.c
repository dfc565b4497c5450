// SPDX-License-Identifier: BSD-2-Clause
/*
 * The range of cells, the objects in them, and what every call begins and ends with. Cells that are
 * free wait in a queue, so that a call with the handle of a freed object can be explained for a while.
 */
#include "check/object.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "check/report.h"
#include "shared/opendat.h"

#define CELL_SIZE ((size_t)1 << OPENDAT_CELL_SHIFT)
#define CELLS_MAX ((size_t)1 << 21)
#define CHUNK ((size_t)64 << 10) /* by which the range is opened; a multiple of every page size */
#define QUARANTINE 2048u	 /* cells that are free before one is used again */
#define BUCKETS 4096u		 /* of inner handles */

_Static_assert(sizeof(struct check_object) <= (size_t)1 << OPENDAT_CELL_SHIFT, "it fits a cell");

__attribute__((visibility("default"))) struct opendat_handle_arena opendat_handle_arena = {
	OPENDAT_HANDLE_ARENA_MAGIC, (uint32_t)CELL_SIZE, 0, 0};

/* all guarded by the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *range;
static size_t used; /* cells that were ever used */
static struct check_object *free_first, *free_last;
static unsigned free_count;
static struct check_object *buckets[BUCKETS];
static struct check_life *lives;

#define CALL_NAME(name, level) "dat_" #name,
static const char *const call_names[] = {CHECK_CALLS(CALL_NAME) "dat_ia_open",
					 CHECK_EXTRA_CALLS(CALL_NAME)};
enum { SAFE, UNSAFE };
#define CALL_LEVEL(name, level) level,
static const unsigned char call_levels[] = {CHECK_CALLS(CALL_LEVEL) SAFE,
					    CHECK_EXTRA_CALLS(CALL_LEVEL)};

/* Fork handlers of the program run between ours, in the thread that forks, and may call us. */
static _Atomic int forking; /* that thread, which has the lock; 0: none */

/* relaxed: only the thread itself finds its number there */
static bool is_forking(void)
{
	int thread = atomic_load_explicit(&forking, memory_order_relaxed);

	return thread && thread == check_thread();
}

void check_lock(void)
{
	if (!is_forking())
		pthread_mutex_lock(&lock);
}

void check_unlock(void)
{
	if (!is_forking())
		pthread_mutex_unlock(&lock);
}

static void fork_prepare(void)
{
	pthread_mutex_lock(&lock);
	atomic_store_explicit(&forking, check_thread(), memory_order_relaxed);
}

static void fork_parent(void)
{
	atomic_store_explicit(&forking, 0, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
}

/* The child has no instance: the kernel has zeroed its cells, so the handles are refused. */
static void fork_child(void)
{
	memset(buckets, 0, sizeof(buckets));
	free_first = NULL;
	free_last = NULL;
	free_count = 0;
	fork_parent();
}

static void listen_to_forks(void)
{
	(void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* ---- cells ---- */

static bool reserve_locked(void)
{
	void *at = mmap(NULL, CELLS_MAX * CELL_SIZE, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return false;
	if (madvise(at, CELLS_MAX * CELL_SIZE, MADV_WIPEONFORK)) {
		munmap(at, CELLS_MAX * CELL_SIZE);
		return false;
	}
	range = at;
	return true;
}

/* Opens the next chunk of the range. */
static bool grow_locked(void)
{
	size_t size = opendat_handle_arena.size;

	if ((!range && !reserve_locked()) || size == CELLS_MAX * CELL_SIZE ||
	    mprotect(range + size, CHUNK, PROT_READ | PROT_WRITE))
		return false;
	/* release: pairs with the acquire loads in libdat, which then reads cells */
	__atomic_store_n(&opendat_handle_arena.size, size + CHUNK, __ATOMIC_RELEASE);
	/* once: who has a handle reads it without more ado */
	if (!size)
		__atomic_store_n(&opendat_handle_arena.base, (uintptr_t)range, __ATOMIC_RELEASE);
	return true;
}

static void unhash_locked(struct check_object *object);

static void free_life_locked(struct check_life *life)
{
	if (!life)
		return;
	*(life->previous ? &life->previous->next : &lives) = life->next;
	if (life->next)
		life->next->previous = life->previous;
	free(life);
}

static struct check_object *take_cell_locked(void)
{
	struct check_object *cell = free_first;

	if (free_count <= QUARANTINE &&
	    (used * CELL_SIZE < opendat_handle_arena.size || grow_locked()))
		return (struct check_object *)(range + used++ * CELL_SIZE);
	if (!cell)
		return NULL;
	free_first = cell->next;
	if (!free_first)
		free_last = NULL;
	free_count--;
	unhash_locked(cell);
	free_life_locked(cell->life);
	cell->life = NULL;
	return cell;
}

static void give_cell_locked(struct check_object *cell)
{
	cell->next = NULL;
	if (free_last)
		free_last->next = cell;
	else
		free_first = cell;
	free_last = cell;
	free_count++;
}

/* ---- look-ups ---- */

static struct check_object **bucket_of(DAT_HANDLE inner)
{
	return &buckets[((uintptr_t)inner >> OPENDAT_CELL_SHIFT) % BUCKETS];
}

/* Dead objects stay findable until their cell is used again; newer ones are in front of them. */
static void unhash_locked(struct check_object *object)
{
	struct check_object **link = bucket_of(object->inner);

	while (*link && *link != object)
		link = &(*link)->next_inner;
	if (*link)
		*link = object->next_inner;
	if (object->type == DAT_HANDLE_TYPE_LMR && object->life) {
		link = &object->ia->life->ia.keys[object->life->lmr.key % CHECK_KEYS];
		while (*link && *link != object)
			link = &(*link)->life->lmr.next_key;
		if (*link)
			*link = object->life->lmr.next_key;
	}
}

struct check_object *check_find(DAT_HANDLE handle)
{
	uintptr_t base = __atomic_load_n(&opendat_handle_arena.base, __ATOMIC_ACQUIRE);
	uintptr_t offset = (uintptr_t)handle - base;
	struct check_object *object = (struct check_object *)handle;

	if (!base || offset >= __atomic_load_n(&opendat_handle_arena.size, __ATOMIC_ACQUIRE) ||
	    offset % CELL_SIZE)
		return NULL;
	/* acquire: pairs with the release in fill_cell_locked */
	return atomic_load_explicit(&object->tag, memory_order_acquire) ? object : NULL;
}

DAT_HANDLE check_inner(DAT_HANDLE handle)
{
	struct check_object *object = check_find(handle);

	return object ? object->inner : handle;
}

struct check_object *check_outer_locked(DAT_HANDLE inner)
{
	struct check_object *object = *bucket_of(inner);

	while (object && object->inner != inner)
		object = object->next_inner;
	return object;
}

struct check_object *check_outer_object(DAT_HANDLE inner)
{
	struct check_object *object;

	if (!inner)
		return NULL;
	check_lock();
	object = check_outer_locked(inner);
	check_unlock();
	return object;
}

DAT_HANDLE check_outer(DAT_HANDLE inner)
{
	struct check_object *object = check_outer_object(inner);

	return object ? (DAT_HANDLE)object : inner;
}

/* ---- life ---- */

static struct check_object **list_of(struct check_object *object)
{
	bool is_poster = object->type == DAT_HANDLE_TYPE_EP || object->type == DAT_HANDLE_TYPE_SRQ;

	return &object->ia->life->ia.objects[is_poster ? CHECK_POSTERS : CHECK_OTHERS];
}

static void fill_cell_locked(struct check_object *object, struct check_object *ia,
			     DAT_HANDLE_TYPE type, DAT_HANDLE inner, struct check_life *life)
{
	struct check_object **bucket = bucket_of(inner);

	object->is_dead = false;
	object->type = (uint8_t)type;
	object->inner = inner;
	object->ia = ia ? ia : object;
	object->life = life;
	life->next = lives;
	if (lives)
		lives->previous = life;
	lives = life;
	object->previous = NULL;
	object->next = NULL;
	if (ia) { /* an instance below is a small integer, which is no handle of an object */
		object->next_inner = *bucket;
		*bucket = object;
		object->next = *list_of(object);
		if (object->next)
			object->next->previous = object;
		*list_of(object) = object;
	}
	/* release: pairs with the acquire in check_find */
	atomic_store_explicit(&object->tag, (uint32_t)type + 1, memory_order_release);
}

static struct check_object *make(const char *maker, struct check_object *ia,
				 const DAT_PROVIDER *provider, DAT_HANDLE_TYPE type,
				 DAT_HANDLE inner)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct check_life *life = calloc(1, sizeof(*life));
	struct check_object *object = NULL;

	pthread_once(&once, listen_to_forks);
	if (!life)
		return NULL;
	life->maker = maker;
	check_place_get(&life->made);
	check_lock();
	object = take_cell_locked();
	if (object) {
		fill_cell_locked(object, ia, type, inner, life);
		/* relaxed: libdat tests it for NULL, and the program hands the handle on */
		__atomic_store_n(&object->provider, provider, __ATOMIC_RELAXED);
	}
	check_unlock();
	if (!object)
		free(life);
	return object;
}

struct check_object *check_object_make(const char *maker, struct check_object *ia,
				       DAT_HANDLE_TYPE type, DAT_HANDLE inner)
{
	return make(maker, ia, ia->provider, type, inner);
}

struct check_object *check_object_make_ia(const DAT_PROVIDER *provider, DAT_IA_HANDLE inner)
{
	return make("dat_ia_open", NULL, provider, DAT_HANDLE_TYPE_IA, inner);
}

DAT_HANDLE check_wrap(const char *maker, struct check_object *ia, DAT_HANDLE_TYPE type,
		      DAT_HANDLE inner)
{
	struct check_object *object = ia ? check_object_make(maker, ia, type, inner) : NULL;

	return object ? (DAT_HANDLE)object : inner;
}

static void unlist_locked(struct check_object *object)
{
	if (object->previous)
		object->previous->next = object->next;
	else if (object->ia != object)
		*list_of(object) = object->next;
	if (object->next)
		object->next->previous = object->previous;
}

void check_object_kill_locked(struct check_object *object)
{
	if (object->is_dead)
		return;
	object->is_dead = true;
	unlist_locked(object);
	give_cell_locked(object);
}

void check_object_kill(struct check_object *object)
{
	check_lock();
	check_object_kill_locked(object);
	check_unlock();
}

struct check_object *check_next_locked(const struct check_object *after)
{
	size_t i = after ? (size_t)((const char *)after - range) / CELL_SIZE + 1 : 0;

	for (; i < used; i++) {
		struct check_object *object = (struct check_object *)(range + i * CELL_SIZE);

		if (object->life)
			return object;
	}
	return NULL;
}

void check_step_locked(struct check_object *object, const char *what, DAT_RETURN result)
{
	struct check_life *life = object->life;

	life->steps[life->step_count++ % CHECK_STEPS] =
		(struct check_step){what, result, check_thread()};
}

/* ---- calls ---- */

const char *check_call_name(enum check_call_number number)
{
	return call_names[number];
}

/*
 * Enters a call that must not overlap with others on the object. Returns the one that it does. The
 * order of the two threads is that of the program: relaxed is enough to see that there are two.
 */
static const char *enter(struct check_call *call)
{
	struct check_life *life = call->object->life;
	int user = 0;

	if (atomic_compare_exchange_strong_explicit(&life->user, &user, check_thread(),
						    memory_order_relaxed, memory_order_relaxed))
		atomic_store_explicit(&life->used_by, call->name, memory_order_relaxed);
	else if (user == check_thread())
		life->nested++;
	else
		return atomic_load_explicit(&life->used_by, memory_order_relaxed);
	call->is_exclusive = true;
	return NULL;
}

static void exit_call(struct check_life *life)
{
	if (life->nested)
		life->nested--;
	else
		atomic_store_explicit(&life->user, 0, memory_order_relaxed);
}

struct check_object *check_begin(struct check_call *call, enum check_call_number number,
				 DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	struct check_object *object = check_find(handle);
	const char *other = NULL;
	bool is_dead = false;

	*call = (struct check_call){.name = check_call_name(number)};
	/* a thread that is cancelled anywhere would leave locks behind, those of malloc among them */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &call->cancel_state);
	if (!object)
		return NULL;
	/* without the lock, which every call would take: a call and the end of its object are the
	 * program's to order, and the cell of a dead one waits */
	is_dead = object->is_dead;
	if (!is_dead && object->type == type)
		call->object = object;
	if (call->object && call_levels[number] == UNSAFE)
		other = enter(call);
	if (is_dead)
		check_report(call, CHECK_USED_FREED, object,
			     "the handle is that of %s, which is freed", check_name(object).text);
	if (other)
		check_report(
			call, CHECK_TWO_THREADS, object,
			"another thread is in %s on %s; the program must serialize these calls",
			other, check_name(object).text);
	return call->object;
}

static DAT_RETURN leave(struct check_call *call, DAT_RETURN result, bool is_free)
{
	struct check_object *object = call->object;
	struct check_place place;

	if (object && call->is_exclusive)
		exit_call(object->life);
	if (object && is_free) {
		check_place_get(&place);
		check_lock();
		check_step_locked(object, call->name, result);
		if (result == DAT_SUCCESS) {
			object->life->ender = call->name;
			object->life->ended = place;
			check_object_kill_locked(object);
		}
		check_unlock();
	}
	pthread_setcancelstate(call->cancel_state, NULL);
	return result;
}

/* The subtype of DAT_INVALID_STATE names the state. */
static void explain(struct check_call *call, DAT_RETURN result)
{
	const char *major, *minor;

	if (DAT_GET_TYPE(result) != DAT_INVALID_STATE || !call->object ||
	    dat_strerror(result, &major, &minor) != DAT_SUCCESS)
		return;
	check_report(call, CHECK_BAD_STATE, call->object, "%s is refused: %s", call->name, minor);
}

DAT_RETURN check_end(struct check_call *call, DAT_RETURN result)
{
	if (result != DAT_SUCCESS)
		explain(call, result);
	return leave(call, result, false);
}

DAT_RETURN check_end_free(struct check_call *call, DAT_RETURN result)
{
	if (result != DAT_SUCCESS)
		explain(call, result);
	return leave(call, result, true);
}
