// SPDX-License-Identifier: BSD-2-Clause
/* Reads all libraries of a process, within a limited time, and what the numbers mean. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "common.h"
#include "live.h"
#include "shared/names.h"

/* --- meaning --- */

const char *const live_op_names[LIVE_OPS] = {"send", "write", "read", "bind", "receive"};

uint64_t live_ops(const struct live_object *ep, enum live_op op)
{
	uint64_t writes = live_value(ep, OPENDAT_STAT_EP_WRITES);
	uint64_t reads = live_value(ep, OPENDAT_STAT_EP_READS);
	uint64_t binds = live_value(ep, OPENDAT_STAT_EP_BINDS);
	uint64_t all = live_value(ep, OPENDAT_STAT_EP_OLD_REQUESTS) +
		       live_value(ep, OPENDAT_STAT_EP_REQUEST_TAIL);
	uint64_t others = writes + reads + binds;

	switch (op) {
	case LIVE_SEND: /* the counters are read one after another */
		return all > others ? all - others : 0;
	case LIVE_WRITE:
		return writes;
	case LIVE_READ:
		return reads;
	case LIVE_BIND:
		return binds;
	default:
		return live_value(ep, OPENDAT_STAT_EP_OLD_RECVS) +
		       live_value(ep, OPENDAT_STAT_EP_RECV_HEAD) +
		       live_value(ep, OPENDAT_STAT_EP_SRQ_RECVS);
	}
}

uint64_t live_bytes(const struct live_object *ep, enum live_op op)
{
	switch (op) {
	case LIVE_SEND:
		return live_value(ep, OPENDAT_STAT_EP_SEND_BYTES);
	case LIVE_WRITE:
		return live_value(ep, OPENDAT_STAT_EP_WRITE_BYTES);
	case LIVE_READ:
		return live_value(ep, OPENDAT_STAT_EP_READ_BYTES);
	case LIVE_RECV:
		return live_value(ep, OPENDAT_STAT_EP_RECV_BYTES);
	default:
		return 0;
	}
}

uint64_t live_outstanding(const struct live_object *object, enum opendat_stat_number head,
			  enum opendat_stat_number tail, enum opendat_stat_number room)
{
	uint64_t count = live_value(object, tail) - live_value(object, head);
	uint64_t most = live_value(object, room);

	/* the two ends were read one after another */
	if (count > INT64_MAX)
		return 0;
	return count < most ? count : most;
}

uint64_t live_srq_available(const struct live_object *srq)
{
	return live_value(srq, OPENDAT_STAT_SRQ_DEVICE)
		       ? live_value(srq, OPENDAT_STAT_SRQ_DEVICE_AVAILABLE)
		       : live_outstanding(srq, OPENDAT_STAT_SRQ_HEAD, OPENDAT_STAT_SRQ_TAIL,
					  OPENDAT_STAT_SRQ_ROOM);
}

const char *live_state_name(uint64_t state)
{
	static const char *const names[] = {
		[DAT_EP_STATE_UNCONNECTED] = "unconnected",
		[DAT_EP_STATE_RESERVED] = "reserved",
		[DAT_EP_STATE_PASSIVE_CONNECTION_PENDING] = "passive-pending",
		[DAT_EP_STATE_ACTIVE_CONNECTION_PENDING] = "active-pending",
		[DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING] = "tentative-pending",
		[DAT_EP_STATE_CONNECTED] = "connected",
		[DAT_EP_STATE_DISCONNECT_PENDING] = "disconnect-pending",
		[DAT_EP_STATE_DISCONNECTED] = "disconnected",
		[DAT_EP_STATE_COMPLETION_PENDING] = "completion-pending",
	};

	return state < sizeof(names) / sizeof(names[0]) && names[state] ? names[state] : "unknown";
}

const char *live_path_name(uint64_t path)
{
	static const char *const names[OPENDAT_PATHS] = {
		[OPENDAT_PATH_NONE] = "-",  [OPENDAT_PATH_MAP] = "map",
		[OPENDAT_PATH_CMA] = "cma", [OPENDAT_PATH_RING] = "ring",
		[OPENDAT_PATH_TCP] = "tcp", [OPENDAT_PATH_VERBS] = "verbs",
	};

	return path < OPENDAT_PATHS ? names[path] : "unknown";
}

const char *live_type_name(unsigned int type)
{
	return type <= DAT_HANDLE_TYPE_SRQ ? opendat_object_name((DAT_HANDLE_TYPE)type) : NULL;
}

/* --- collecting --- */

static int compare_objects(const void *a, const void *b)
{
	const struct live_object *left = a, *right = b;

	return left->address == right->address ? 0 : left->address < right->address ? -1 : 1;
}

const struct live_object *live_same(const struct live_process *process,
				    const struct live_object *object)
{
	const struct live_object *found =
		process->object_count ? bsearch(object, process->objects, process->object_count,
						sizeof(*object), compare_objects)
				      : NULL;

	return found && found->number == object->number && found->type == object->type ? found
										       : NULL;
}

uint32_t live_find(const struct live_process *process, const struct live_object *object,
		   enum opendat_stat_number number)
{
	const struct live_object wanted = {.address = live_value(object, number)};
	const struct live_object *found = NULL;

	if (wanted.address && process->object_count)
		found = bsearch(&wanted, process->objects, process->object_count, sizeof(wanted),
				compare_objects);
	return found ? found->number : 0;
}

static bool find_instance(const struct live_process *process, uint64_t address, uint32_t *index)
{
	for (uint32_t i = 0; i < process->instance_count; i++) {
		if (process->instances[i].address == address) {
			*index = i;
			return true;
		}
	}
	return false;
}

void live_settle(struct live_process *process, const char *adapter)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < process->instance_count; i++)
		if (!adapter || !strcmp(process->instances[i].name, adapter))
			process->instances[kept++] = process->instances[i];
	process->instance_count = kept;
	kept = 0;
	for (uint32_t i = 0; i < process->object_count; i++) {
		struct live_object *object = &process->objects[i];
		struct live_instance *instance;

		if (!find_instance(process, object->instance, &object->instance_index))
			continue;
		instance = &process->instances[object->instance_index];
		if (object->type < LIVE_TYPES)
			instance->count[object->type]++;
		if (object->type == DAT_HANDLE_TYPE_LMR)
			instance->registered += live_value(object, OPENDAT_STAT_LMR_LENGTH);
		process->objects[kept++] = *object;
	}
	process->object_count = kept;
	if (kept)
		qsort(process->objects, kept, sizeof(*process->objects), compare_objects);
}

void live_process_free(struct live_process *process)
{
	if (!process)
		return;
	free(process->instances);
	free(process->objects);
	free(process);
}

/* --- reading processes --- */

/* One read of a process, by a thread of its own: it may block, for example in a userfaultfd(2). */
struct task {
	struct live_process *process;
	const char *adapter;
	int rc;
	bool has_library;
	pthread_t thread;
	struct task *next; /* of `blocked` */
};

static int read_process(void *context, uint64_t address, void *to, size_t len)
{
	const pid_t *thread = context;
	struct iovec local = {.iov_base = to, .iov_len = len};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = len};
	ssize_t got = process_vm_readv(*thread, &local, 1, &remote, 1, 0);

	if (got < 0)
		return -errno;
	return (size_t)got == len ? 0 : -EFAULT;
}

static void *task_run(void *argument)
{
	struct task *task = argument;
	struct live_process *process = task->process;
	pid_t thread = live_thread(process->pid);
	const struct live_memory memory = {read_process, &thread};
	struct live_library libraries[LIVE_LIBRARIES];
	int count = live_libraries(thread, libraries);
	int failure = count == 0 ? -ENOENT : count;

	task->has_library = count > 0;
	live_process_name(process->pid, process->name, sizeof(process->name));
	process->time_ns = tool_now_ns();
	/* one library may be of a version without a table, or end in the middle of a list */
	for (int i = 0; i < count; i++) {
		int rc = live_read(&memory, &libraries[i], process);

		if (failure >= 0 || (failure == -ENOENT && rc != 0))
			failure = rc;
		if (rc == 0)
			failure = 0;
	}
	live_settle(process, task->adapter);
	task->rc = process->instance_count ? 0 : failure;
	return NULL;
}

static void task_free(struct task *task)
{
	live_process_free(task->process);
	free(task);
}

/* Tasks that have not ended in time, and still use their memory. The main thread's. */
static struct task *blocked;

/* NULL: there is no thread for it. */
static struct task *task_start(pid_t pid, const char *adapter)
{
	struct task *task = calloc(1, sizeof(*task));

	if (task)
		task->process = calloc(1, sizeof(*task->process));
	if (!task || !task->process)
		abort();
	task->process->pid = pid;
	task->adapter = adapter;
	if (!pthread_create(&task->thread, NULL, task_run, task))
		return task;
	task_free(task);
	return NULL;
}

/* Takes the answer of a task and frees it. False: the task has not ended within that time. */
static bool task_end(struct task *task, uint64_t wait_ns, struct live_answer *answer)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	wait_ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(wait_ns / 1000000000);
	until.tv_nsec = (long)(wait_ns % 1000000000);
	if (pthread_timedjoin_np(task->thread, NULL, &until))
		return false;
	answer->rc = task->rc;
	answer->has_library = task->has_library;
	if (task->rc == 0) {
		answer->process = task->process;
		task->process = NULL;
	}
	task_free(task);
	return true;
}

/* Is an earlier read of that process still blocked? */
static bool is_blocked(pid_t pid)
{
	struct task **link = &blocked, *task;

	while ((task = *link) && task->process->pid != pid)
		link = &task->next;
	if (!task)
		return false;
	if (pthread_tryjoin_np(task->thread, NULL))
		return true;
	*link = task->next;
	task_free(task);
	return false;
}

void live_complain(pid_t pid, int rc)
{
	switch (rc) {
	case -EPERM:
	case -EACCES:
		tool_complain(
			"process %d: no permission to read its memory; it needs the same user "
			"or root, and kernel.yama.ptrace_scope 0 or root",
			(int)pid);
		break;
	case -ENOENT:
		tool_complain("process %d: has not loaded a provider library that can be read",
			      (int)pid);
		break;
	case -ETIMEDOUT:
		tool_complain("process %d: could not be read within %d s", (int)pid, LIVE_WAIT_S);
		break;
	case -EFAULT:
	case -EPROTO:
		tool_complain("process %d: its memory does not hold what a provider library stores "
			      "there",
			      (int)pid);
		break;
	default:
		tool_complain("process %d: %s", (int)pid, strerror(-rc));
	}
}

static uint64_t left_of(uint64_t deadline_ns)
{
	uint64_t now = tool_now_ns();

	return now < deadline_ns ? deadline_ns - now : 0;
}

void live_read_processes(struct live_answer *answers, size_t count, const char *adapter)
{
	uint64_t deadline_ns = tool_now_ns() + LIVE_WAIT_S * UINT64_C(1000000000);
	struct task **tasks = calloc(count + 1, sizeof(struct task *));

	if (!tasks)
		abort();
	for (size_t i = 0; i < count; i++) {
		answers[i].rc = -ETIMEDOUT;
		answers[i].has_library = true;
		if (is_blocked(answers[i].pid))
			continue;
		tasks[i] = task_start(answers[i].pid, adapter);
		if (!tasks[i])
			answers[i].rc = -EAGAIN;
		/* its share of the time: all others get theirs, whatever this one does */
		else if (task_end(tasks[i], left_of(deadline_ns) / (count - i), &answers[i]))
			tasks[i] = NULL;
	}
	for (size_t i = 0; i < count; i++) {
		if (!tasks[i] || task_end(tasks[i], left_of(deadline_ns), &answers[i]))
			continue;
		tasks[i]->next = blocked;
		blocked = tasks[i];
	}
	free(tasks);
}
