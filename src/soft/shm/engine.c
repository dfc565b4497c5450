// SPDX-License-Identifier: BSD-2-Clause
/*
 * The engine object: its life, the table of numbers, the list of active connections, and what a
 * polling or a sleeping thread of the consumer does with it.
 */
#include "soft/shm/engine.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "core/base/log.h"
#include "core/base/slab.h"
#include "soft/fds.h"
#include "soft/shm/conn.h"

#define FIRST_SLOTS 64u
#define POLL_MOST 64u /* connections that one call of progress looks at */
#define GAPS_MOST 16u /* beside as many as there are connections */
#define MANY 16u      /* connections in which polls look for a likely one now and then */
#define SPINS 200u
#define STACK_SIZE (256u * 1024u) /* of the service thread, which needs less than 64 KiB */
#define PIECE_NS 1000000	  /* more than a piece of a copy into our memory takes */

uint64_t shm_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * A stack of the usual size takes 8 MiB of address space, and agents of the consumer do not run on
 * this one. It also has to hold the variables of threads, whose size is the program's: where they
 * do not fit (EINVAL), the system chooses.
 */
static int create_thread(struct shm_engine *engine)
{
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	rc = pthread_create(&engine->thread, &attr, shm_service_run, engine);
	if (rc == EINVAL)
		rc = pthread_create(&engine->thread, NULL, shm_service_run, engine);
	pthread_attr_destroy(&attr);
	return rc;
}

static int start_thread(struct shm_engine *engine)
{
	sigset_t all, old;
	int rc;

	/* GEN-36: signals are the consumer's; the thread inherits the full mask */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	shm_engine_get(engine);
	rc = create_thread(engine);
	if (rc)
		shm_engine_put(engine);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -rc;
}

static int open_fds(struct shm_engine *engine)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = SHM_ID_KICK};

	soft_fd_begin();
	engine->epoll_fd = soft_fd_end(epoll_create1(EPOLL_CLOEXEC));
	if (engine->epoll_fd < 0)
		return engine->epoll_fd;
	soft_fd_begin();
	engine->kick_fd = soft_fd_end(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (engine->kick_fd < 0)
		return engine->kick_fd;
	if (epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, engine->kick_fd, &event) < 0)
		return -errno;
	return 0;
}

int shm_engine_create(struct soft_adapter *adapter, struct shm_engine **engine_out)
{
	struct shm_engine *engine = core_slab_alloc(sizeof(*engine));
	int rc;

	if (!engine)
		return -ENOMEM;
	engine->ia = adapter->ia;
	engine->adapter = adapter;
	engine->settings = adapter->ia->settings;
	engine->epoll_fd = -1;
	engine->kick_fd = -1;
	atomic_init(&engine->refs, 1);
	atomic_init(&engine->deadline_ns, UINT64_MAX);
	core_lock_init(&engine->lock);
	if (getrandom(engine->token, sizeof(engine->token), 0) != sizeof(engine->token)) {
		rc = -EIO;
		goto err;
	}
	rc = open_fds(engine);
	if (rc < 0)
		goto err;
	rc = start_thread(engine);
	if (rc < 0)
		goto err;
	*engine_out = engine;
	return 0;
err:
	shm_engine_put(engine);
	return rc;
}

void shm_engine_get(struct shm_engine *engine)
{
	/* relaxed: the caller holds a reference already */
	atomic_fetch_add_explicit(&engine->refs, 1, memory_order_relaxed);
}

static void free_slots(struct shm_engine *engine)
{
	core_slab_free(engine->slots, engine->slot_count * sizeof(*engine->slots));
	core_slab_free(engine->active, engine->slot_count * sizeof(*engine->active));
}

void shm_engine_put(struct shm_engine *engine)
{
	if (atomic_fetch_sub_explicit(&engine->refs, 1, memory_order_acq_rel) != 1)
		return;
	soft_fd_close(engine->kick_fd);
	soft_fd_close(engine->epoll_fd);
	core_lock_destroy(&engine->lock);
	free_slots(engine);
	core_slab_free(engine, sizeof(*engine));
}

static void write_kick(struct shm_engine *engine)
{
	uint64_t one = 1;
	int state = core_cancel_off();
	ssize_t written = write(engine->kick_fd, &one, sizeof(one));

	(void)written; /* a full counter (EAGAIN) wakes as well */
	core_cancel_restore(state);
}

void shm_engine_close(struct shm_engine *engine)
{
	atomic_store(&engine->is_stopping, true);
	write_kick(engine);
	if (pthread_equal(engine->thread, pthread_self()))
		pthread_detach(engine->thread);
	else
		pthread_join(engine->thread, NULL);
	shm_engine_put(engine);
}

void shm_engine_kick(struct shm_engine *engine)
{
	/* sequentially consistent: what we want noticed was stored before; see service_kicked */
	if (!atomic_exchange(&engine->is_kicked, true))
		write_kick(engine);
}

void shm_engine_serve_soon(struct shm_engine *engine)
{
	atomic_store(&engine->is_serving, true);
	shm_engine_kick(engine);
}

void shm_engine_at(struct shm_engine *engine, uint64_t deadline_ns)
{
	uint64_t old = atomic_load(&engine->deadline_ns);

	while (deadline_ns < old) {
		if (atomic_compare_exchange_weak(&engine->deadline_ns, &old, deadline_ns)) {
			shm_engine_kick(engine);
			return;
		}
	}
}

/* --- numbers --- */

static int grow_slots(struct shm_engine *engine)
{
	uint32_t count = engine->slot_count ? engine->slot_count * 2 : FIRST_SLOTS;
	struct shm_conn **active = core_slab_alloc(count * sizeof(*active));
	struct shm_slot *slots = core_slab_alloc(count * sizeof(*slots));

	if (!active || !slots) {
		core_slab_free(active, count * sizeof(*active));
		core_slab_free(slots, count * sizeof(*slots));
		return -ENOMEM;
	}
	if (engine->slot_count) {
		memcpy(slots, engine->slots, engine->slot_count * sizeof(*slots));
		memcpy(active, engine->active, engine->slot_count * sizeof(struct shm_conn *));
		free_slots(engine);
	}
	engine->slots = slots;
	engine->active = active;
	engine->slot_count = count;
	return 0;
}

int shm_engine_add(struct shm_engine *engine, enum shm_slot_kind kind, void *object,
		   uint64_t *id_out)
{
	struct shm_slot *slot;
	uint32_t index;
	int rc = 0;

	core_lock_acquire(&engine->lock);
	if (engine->free_first) {
		index = engine->free_first - 1;
		slot = &engine->slots[index];
		engine->free_first = slot->next_free;
		if (!engine->free_first)
			engine->free_last = 0;
	} else {
		if (engine->slot_used == engine->slot_count)
			rc = grow_slots(engine);
		if (rc < 0)
			goto out;
		index = engine->slot_used++;
		slot = &engine->slots[index];
	}
	slot->object = object;
	slot->kind = (uint8_t)kind;
	slot->generation++;
	*id_out = (uint64_t)slot->generation << 32 | index;
out:
	core_lock_release(&engine->lock);
	return rc;
}

/* The live slot of a number, engine locked; NULL when its object is gone. */
static struct shm_slot *slot_locked(struct shm_engine *engine, uint64_t id)
{
	uint32_t index = (uint32_t)id;

	if (index >= engine->slot_used || engine->slots[index].kind == SHM_SLOT_FREE ||
	    engine->slots[index].generation != (uint32_t)(id >> 32))
		return NULL;
	return &engine->slots[index];
}

void shm_engine_remove(struct shm_engine *engine, uint64_t id)
{
	struct shm_slot *slot;

	core_lock_acquire(&engine->lock);
	slot = slot_locked(engine, id);
	if (slot) {
		slot->kind = SHM_SLOT_FREE;
		slot->object = NULL;
		slot->next_free = 0;
		if (engine->free_last)
			engine->slots[engine->free_last - 1].next_free = (uint32_t)id + 1;
		else
			engine->free_first = (uint32_t)id + 1;
		engine->free_last = (uint32_t)id + 1;
	}
	core_lock_release(&engine->lock);
}

void *shm_engine_find(struct shm_engine *engine, uint64_t id, enum shm_slot_kind *kind_out)
{
	struct shm_slot *slot;
	void *object = NULL;

	core_lock_acquire(&engine->lock);
	slot = slot_locked(engine, id);
	if (slot && slot->kind == SHM_SLOT_LISTENER) {
		object = slot->object;
		shm_listener_get(object);
	} else if (slot && shm_conn_get_unless_dead(slot->object)) {
		object = slot->object;
	}
	if (object)
		*kind_out = (enum shm_slot_kind)slot->kind;
	core_lock_release(&engine->lock);
	return object;
}

struct shm_conn *shm_engine_next_conn(struct shm_engine *engine, uint32_t *index,
				      bool (*wanted)(const struct shm_conn *, uint64_t),
				      uint64_t argument)
{
	struct shm_conn *found = NULL;

	core_lock_acquire(&engine->lock);
	for (; !found && *index < engine->slot_used; ++*index) {
		struct shm_slot *slot = &engine->slots[*index];

		if (slot->kind == SHM_SLOT_CONN && wanted(slot->object, argument) &&
		    shm_conn_get_unless_dead(slot->object))
			found = slot->object;
	}
	core_lock_release(&engine->lock);
	return found;
}

struct shm_conn *shm_engine_take_todo(struct shm_engine *engine)
{
	struct shm_conn *conn;

	/* sequentially consistent: whoever adds one stores it, then kicks */
	if (!atomic_load(&engine->todo_first))
		return NULL;
	core_lock_acquire(&engine->lock);
	conn = atomic_load(&engine->todo_first);
	if (conn) {
		atomic_store(&engine->todo_first, conn->next_todo);
		conn->is_todo = false;
	}
	core_lock_release(&engine->lock);
	return conn;
}

uint64_t shm_engine_count(struct shm_engine *engine, enum shm_counter counter)
{
	uint64_t count;
	uint32_t i;

	core_lock_acquire(&engine->lock);
	count = atomic_load_explicit(&engine->counters[counter], memory_order_relaxed);
	for (i = 0; i < engine->slot_used; i++) {
		const struct shm_conn *conn = engine->slots[i].object;

		if (engine->slots[i].kind == SHM_SLOT_CONN)
			count += atomic_load_explicit(&conn->counters[counter],
						      memory_order_relaxed);
	}
	core_lock_release(&engine->lock);
	return count;
}

void shm_engine_earliest(struct shm_engine *engine)
{
	uint64_t earliest = UINT64_MAX, old;
	uint32_t i;

	core_lock_acquire(&engine->lock);
	for (i = 0; i < engine->slot_used; i++) {
		const struct shm_conn *conn = engine->slots[i].object;
		uint64_t deadline;

		if (engine->slots[i].kind != SHM_SLOT_CONN)
			continue;
		deadline = atomic_load(&conn->deadline_ns);
		if (deadline && deadline < earliest)
			earliest = deadline;
	}
	for (const struct shm_conn *kept = engine->kept_first; kept; kept = kept->next_kept)
		if (kept->give_up_ns < earliest)
			earliest = kept->give_up_ns;
	core_lock_release(&engine->lock);
	old = atomic_load(&engine->deadline_ns);
	while (earliest < old)
		if (atomic_compare_exchange_weak(&engine->deadline_ns, &old, earliest))
			return;
}

/* --- the active connections --- */

/* relaxed: the lock guards it; who reads it without takes it as a hint */
static uint32_t active_count(const struct shm_engine *engine)
{
	return atomic_load_explicit(&engine->active_count, memory_order_relaxed);
}

static void set_active_count(struct shm_engine *engine, uint32_t count)
{
	atomic_store_explicit(&engine->active_count, count, memory_order_relaxed);
}

static uint32_t active_at(const struct shm_conn *conn)
{
	return atomic_load_explicit(&conn->active_at, memory_order_relaxed);
}

static void set_active_at(struct shm_conn *conn, uint32_t at)
{
	atomic_store_explicit(&conn->active_at, at, memory_order_relaxed);
}

/* The one whose turn it is; there are some. */
CORE_INLINE struct shm_conn *next_locked(struct shm_engine *engine)
{
	uint32_t at = engine->active_next;
	struct shm_conn *conn;

	do {
		if (at >= engine->active_end)
			at = 0;
		conn = engine->active[at++];
	} while (!conn);
	engine->active_next = at;
	return conn;
}

/*
 * Where there are many, one look in four is out of turn: at the one that was posted to last, which
 * may answer, or at the one behind that which had work last. NULL: no such look now.
 */
CORE_INLINE struct shm_conn *likely_locked(struct shm_engine *engine)
{
	uint32_t at;

	if (engine->active_end <= MANY || ++engine->looks % 4)
		return NULL;
	at = engine->looks % 8 ? engine->likely_next
			       : atomic_load_explicit(&engine->posted_at, memory_order_relaxed);
	return at < engine->active_end ? engine->active[at] : NULL;
}

/* Closes the gaps; whose turn it is stays. */
static void close_gaps_locked(struct shm_engine *engine)
{
	uint32_t from, to = 0, next = 0;

	for (from = 0; from < engine->active_end; from++) {
		struct shm_conn *conn = engine->active[from];

		if (from == engine->active_next)
			next = to;
		if (conn) {
			set_active_at(conn, to);
			engine->active[to++] = conn;
		}
	}
	engine->active_next = next;
	engine->active_end = to;
}

static void append_locked(struct shm_engine *engine, struct shm_conn *conn)
{
	/* as many have room as there are numbers */
	if (engine->active_end == engine->slot_count)
		close_gaps_locked(engine);
	set_active_at(conn, engine->active_end);
	engine->active[engine->active_end++] = conn;
	set_active_count(engine, active_count(engine) + 1);
}

static void remove_locked(struct shm_engine *engine, struct shm_conn *conn)
{
	uint32_t count = active_count(engine) - 1;

	engine->active[active_at(conn)] = NULL;
	set_active_count(engine, count);
	if (engine->active_end - count > count + GAPS_MOST)
		close_gaps_locked(engine);
}

void shm_engine_activate(struct shm_engine *engine, struct shm_conn *conn)
{
	atomic_store_explicit(&engine->posted_at, active_at(conn), memory_order_relaxed);
	/* relaxed: a stale answer costs a poll; whoever must be noticed uses shm_conn_later */
	if (atomic_load_explicit(&conn->is_active, memory_order_relaxed))
		return;
	core_lock_acquire(&engine->lock);
	if (!atomic_load_explicit(&conn->is_active, memory_order_relaxed)) {
		shm_conn_get(conn);
		append_locked(engine, conn);
		conn->idle_polls = 0;
		atomic_store_explicit(&conn->is_active, true, memory_order_relaxed);
	}
	core_lock_release(&engine->lock);
}

/* True: the list's reference is the caller's to drop. */
static bool deactivate_locked(struct shm_engine *engine, struct shm_conn *conn)
{
	if (!atomic_load_explicit(&conn->is_active, memory_order_relaxed))
		return false;
	remove_locked(engine, conn);
	atomic_store_explicit(&conn->is_active, false, memory_order_relaxed);
	return true;
}

void shm_engine_deactivate(struct shm_engine *engine, struct shm_conn *conn)
{
	bool was_active;

	core_lock_acquire(&engine->lock);
	was_active = deactivate_locked(engine, conn);
	core_lock_release(&engine->lock);
	if (was_active)
		shm_conn_put(conn);
}

struct shm_conn *shm_engine_rotate(struct shm_engine *engine)
{
	struct shm_conn *conn = NULL;

	core_lock_acquire(&engine->lock);
	if (active_count(engine)) {
		conn = next_locked(engine);
		shm_conn_get(conn);
	}
	core_lock_release(&engine->lock);
	return conn;
}

/* A connection that a polling thread has found. */
struct candidate {
	/* alive only while its endpoint is locked and owns it; else no more than an address */
	struct shm_conn *conn;
	struct core_ref ep;
	bool is_quiet;	/* no work for very many polls */
	bool is_stream; /* it had work at the last poll, too */
};

/*
 * The next active connection that has work, or had none for very many polls (until it is armed).
 * *looks is how many may be looked at. False: none of them.
 */
CORE_INLINE bool next_candidate(struct shm_engine *engine, uint32_t *looks,
				struct candidate *candidate)
{
	bool is_found = false;

	core_lock_acquire(&engine->lock);
	while (*looks && !is_found && active_count(engine)) {
		struct shm_conn *conn = likely_locked(engine);
		bool is_its_turn = !conn;

		if (is_its_turn)
			conn = next_locked(engine);
		--*looks;
		candidate->is_quiet = !shm_conn_has_work(conn);
		candidate->is_stream = !conn->idle_polls;
		if (!candidate->is_quiet)
			conn->idle_polls = 0;
		else if (!is_its_turn || ++conn->idle_polls < SHM_IDLE_POLLS)
			continue;
		engine->likely_next = active_at(conn) + 1;
		candidate->conn = conn;
		candidate->ep = shm_conn_ep(conn);
		is_found = true;
	}
	core_lock_release(&engine->lock);
	return is_found;
}

/* How many connections a poll looks at. */
CORE_INLINE uint32_t looks_of(struct shm_engine *engine)
{
	/* a connection that is added meanwhile is found by the next call */
	uint32_t looks = active_count(engine);

	return looks < POLL_MOST ? looks : POLL_MOST;
}

/* A thread of the consumer drives the connections. */
CORE_INLINE void count_poll(struct shm_engine *engine)
{
	/* also while all connections sleep, or none would be left to who polls when it wakes up.
	 * relaxed, and lost counts do not matter: the service thread looks for any change */
	uint64_t polls = atomic_load_explicit(&engine->polls, memory_order_relaxed);

	atomic_store_explicit(&engine->polls, polls + 1, memory_order_relaxed);
	if (atomic_load_explicit(&engine->is_left, memory_order_relaxed))
		atomic_store_explicit(&engine->is_left, false, memory_order_relaxed);
}

/* --- the general path --- */

/*
 * The connection has no endpoint any more: takes it off the list, if it still is there. If that
 * endpoint lives it is locked, so that no other connection of its can have come to the same
 * address; one of another endpoint can.
 */
__attribute__((noinline)) static void forget(struct shm_engine *engine,
					     const struct candidate *candidate)
{
	struct shm_conn *conn = NULL;
	bool was_active = false;
	struct core_ref ep;
	uint32_t i = 0;

	core_lock_acquire(&engine->lock);
	while (i < engine->active_end && engine->active[i] != candidate->conn)
		i++;
	if (i < engine->active_end) {
		conn = engine->active[i];
		ep = shm_conn_ep(conn);
		if (ep.cell == candidate->ep.cell && ep.generation == candidate->ep.generation)
			was_active = deactivate_locked(engine, conn);
	}
	core_lock_release(&engine->lock);
	if (was_active)
		shm_conn_put(conn);
}

/*
 * Does what there is to do; a quiet connection goes to sleep, so that polls cost less. The endpoint
 * keeps its connection alive until that is over.
 */
static int drive(struct shm_engine *engine, const struct candidate *candidate)
{
	struct shm_conn *conn = candidate->conn;
	struct core_ep *ep = core_ep_enter(candidate->ep);
	int happened = 0;

	if (!ep || !shm_conn_is_of(conn, ep)) {
		forget(engine, candidate);
		if (ep)
			core_ep_leave(ep);
		return 0;
	}
	if (shm_conn_state(conn) == SHM_ESTABLISHED && candidate->is_quiet)
		shm_conn_arm(conn);
	else if (shm_conn_state(conn) == SHM_ESTABLISHED)
		happened = shm_conn_pass(conn, ep);
	core_ep_leave(ep);
	return happened;
}

int shm_engine_look(struct shm_engine *engine)
{
	struct candidate candidate = {.conn = NULL};
	uint32_t looks = looks_of(engine);
	int happened = 0;

	while (looks && next_candidate(engine, &looks, &candidate))
		happened += drive(engine, &candidate);
	return happened;
}

/* The caller keeps the instance: it has an event dispatcher or a notification object of it busy. */
int shm_engine_progress(struct shm_engine *engine)
{
	count_poll(engine);
	if (!active_count(engine))
		return 0;
	return shm_engine_look(engine);
}

/* --- the fast path --- */

/* False: the connection needs more than its fast path does. */
CORE_INLINE bool drive_fast(const struct candidate *candidate, struct core_dequeue *dequeue)
{
	struct shm_conn *conn = candidate->conn;
	struct core_ep *ep;
	bool is_done;

	if (candidate->is_quiet || !candidate->ep.cell)
		return false;
	ep = core_handle_enter_fast(candidate->ep.cell, DAT_HANDLE_TYPE_EP);
	if (!ep)
		return false;
	is_done = shm_conn_is_of(conn, ep) &&
		  shm_poll_fast(conn, ep, candidate->is_stream ? SHM_BATCH : 1, dequeue);
	core_lock_leave(&ep->cell->lock);
	return is_done;
}

enum transport_poll shm_poll(struct shm_engine *engine, struct core_handle *cell, DAT_EVENT *event)
{
	struct core_dequeue dequeue = {.cell = cell, .event = event};
	struct candidate candidate = {.conn = NULL};
	uint32_t looks;

	count_poll(engine);
	looks = looks_of(engine);
	while (looks && !dequeue.is_filled && next_candidate(engine, &looks, &candidate))
		if (!drive_fast(&candidate, &dequeue) && !dequeue.is_filled)
			return TRANSPORT_POLL_GENERAL;
	return dequeue.is_filled ? TRANSPORT_POLL_FOUND : TRANSPORT_POLL_EMPTY;
}

int shm_engine_arm(struct shm_engine *engine)
{
	uint32_t count = active_count(engine);
	int busy = 0;

	/* the first one that has news is answer enough */
	for (; count && !busy; count--) {
		struct shm_conn *conn = shm_engine_rotate(engine);
		struct core_ep *ep;

		if (!conn)
			break;
		ep = shm_conn_enter(conn);
		if (ep) {
			if (shm_conn_state(conn) == SHM_ESTABLISHED && !shm_conn_arm(conn))
				busy = 1;
			core_ep_leave(ep);
		}
		shm_conn_put(conn);
	}
	/* else a connection that the service thread disarms for us would wait for its next tick; a
	 * hint: a thread that still polls takes it back */
	if (!busy)
		atomic_store(&engine->is_left, true);
	return busy;
}

/* --- keys --- */

/* Can the peer have announced anything? */
static bool is_answered(const struct shm_conn *conn)
{
	enum shm_state state = shm_conn_state(conn);

	return state != SHM_ARRIVING && state != SHM_CALLING;
}

static bool is_touching(const struct shm_conn *conn, uint64_t key)
{
	if (!is_answered(conn))
		return false;
	/* acquire: the copy is finished when the announcement is gone. Our own, which is never late
	 */
	if (atomic_load_explicit(&conn->local_announce, memory_order_acquire) == key)
		return true;
	return !atomic_load(&conn->is_distrusted) && shm_conn_announced(conn) == key;
}

static bool is_announcing_lightly(const struct shm_conn *conn, uint64_t unused)
{
	(void)unused;
	return is_answered(conn) && shm_conn_is_light(conn);
}

bool shm_conn_has_hung_up(const struct shm_conn *conn)
{
	struct pollfd end = {.fd = conn->fd};
	int state = core_cancel_off();
	bool has_hung_up = poll(&end, 1, 0) == 1 && (end.revents & (POLLHUP | POLLERR));

	core_cancel_restore(state);
	return has_hung_up;
}

bool shm_wait_untouched(struct shm_conn *conn, bool (*touched)(const struct shm_conn *, uint64_t),
			uint64_t argument, uint64_t limit_ns)
{
	unsigned round;

	for (round = 0; touched(conn, argument); round++) {
		struct timespec pause = {.tv_nsec = round < 2 * SPINS ? 50000 : 1000000};

		if (round < SPINS)
			continue;
		/* the kernel closes the socket of a dead peer after its last copy */
		if (shm_conn_has_hung_up(conn))
			return true;
		if (shm_now_ns() >= limit_ns)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/*
 * LMR-FREE-21 for a caller that may not block: true when the peer is dead, or has been in the
 * middle of a copy through this key for longer than it may. The service thread then ends the
 * connection.
 */
static bool is_overdue(struct shm_conn *conn, uint32_t key)
{
	struct shm_engine *engine = conn->engine;
	uint64_t limit_ns = engine->settings.peer_timeout_ms * 1000000u;
	uint64_t now = shm_now_ns();
	uint64_t since_ns;

	core_lock_acquire(&engine->lock);
	/* an old one: the number was another window's then, or it was us who did not run */
	if (conn->blamed_key != key || now - conn->blamed_ns > 2 * limit_ns) {
		conn->blamed_key = key;
		conn->blamed_ns = now;
	}
	since_ns = conn->blamed_ns;
	core_lock_release(&engine->lock);
	/* the kernel closes the socket of a dead peer after its last copy */
	if (shm_conn_has_hung_up(conn))
		return true;
	if (now - since_ns < limit_ns)
		return false;
	/* first of all, no copy when it goes on; the next call believes it, because one that runs
	 * at this moment finishes its piece */
	if (!atomic_exchange(&conn->mine->revoked, 1))
		return false;
	atomic_store(&conn->is_distrusted, true);
	shm_conn_later(conn);
	return true;
}

/*
 * The key is dead, with a full fence behind that: whoever copies through it has announced that
 * visibly when this returns. Only what was given to a peer is announced without a fence.
 */
static void fence_peers(struct shm_engine *engine, uint32_t key)
{
	struct shm_conn *light;
	uint32_t index = 0;

	if (!soft_keys_is_given(engine->adapter->keys, key))
		return;
	light = shm_engine_next_conn(engine, &index, is_announcing_lightly, 0);
	if (!light)
		return;
	core_fence_everywhere(CORE_FENCE_HOST);
	shm_conn_put(light);
}

bool shm_engine_is_key_touched(struct shm_engine *engine, uint32_t key)
{
	bool is_touched = false;
	struct shm_conn *conn;
	uint32_t index = 0;

	fence_peers(engine, key);
	while ((conn = shm_engine_next_conn(engine, &index, is_touching, key)) != NULL) {
		if (!is_overdue(conn, key))
			is_touched = true;
		shm_conn_put(conn);
	}
	return is_touched;
}

void shm_engine_wait_key(struct shm_engine *engine, uint32_t key)
{
	/* one limit for all of them, however many peers are at it */
	uint64_t limit_ns = shm_now_ns() + engine->settings.peer_timeout_ms * 1000000u;
	struct shm_conn *conn;
	uint32_t index = 0;

	fence_peers(engine, key);
	while ((conn = shm_engine_next_conn(engine, &index, is_touching, key)) != NULL) {
		if (!shm_wait_untouched(conn, is_touching, key, limit_ns)) {
			struct core_ep *ep;

			/* LMR-FREE-21: stopped in the middle of a copy; it pays with the connection
			 */
			core_log(CORE_LOG_MEMORY | CORE_LOG_ERROR,
				 "key 0x%x: process %d is stopped in the middle of a copy; its "
				 "connection is broken",
				 key, (int)conn->remote.pid);
			atomic_store(&conn->is_distrusted, true);
			ep = shm_conn_enter(conn);
			if (ep) {
				shm_conn_close(conn, DAT_CONNECTION_EVENT_BROKEN);
				shm_conn_finish(conn, ep);
				core_ep_leave(ep);
			}
			/* its gate is closed; should it run at this moment, it finishes its piece
			 */
			nanosleep(&(struct timespec){.tv_nsec = PIECE_NS}, NULL);
		}
		shm_conn_put(conn);
	}
}
