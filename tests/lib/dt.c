// SPDX-License-Identifier: BSD-2-Clause
/*
 * The test harness, part one: checks of return codes, the adapter, memory and EVDs.
 * A failing check in the main thread ends the test as cmocka does; in any other thread it aborts
 * the program, because cmocka's jump back to the test may not leave a thread's own stack.
 */
#include "dt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "copy_path.h"

#define DT_ASYNC_QLEN 16

/* For the thread sanitizer: a peer process is a fork of the test, and creates threads. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

/*
 * A false report: the provider searches the open descriptors for the file of a buffer while a test
 * closes one of them. It is then not found. No function of the library is named here.
 */
__attribute__((weak, visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:^dt_file_forget$\n";
}

/* Skips the tests whose names match this pattern, which with-fake cannot run. */
__attribute__((constructor)) static void dt_leave_out(void)
{
	const char *pattern = getenv("OPENDAT_TEST_WITHOUT");

	if (pattern && *pattern)
		cmocka_set_skip_filter(pattern);
}

/* --- return codes --- */

static void dt_fail(const char *file, int line)
{
	if (syscall(SYS_gettid) != getpid()) {
		fprintf(stderr, "%s:%d: error: check failed in a second thread\n", file, line);
		abort();
	}
	_fail(file, line);
}

const char *dt_strerror(DAT_RETURN ret)
{
	static _Thread_local char text[128];
	const char *major = "?";
	const char *minor = "?";

	if (dat_strerror(ret, &major, &minor) != DAT_SUCCESS)
		snprintf(text, sizeof(text), "0x%08" PRIx32, ret);
	else if (*minor)
		snprintf(text, sizeof(text), "%s / %s", major, minor);
	else
		snprintf(text, sizeof(text), "%s", major);
	return text;
}

void dt_check_ok(DAT_RETURN ret, const char *call, const char *file, int line)
{
	if (ret == DAT_SUCCESS)
		return;
	print_error("%s:%d: %s\n\treturned %s, not DAT_SUCCESS\n", file, line, call,
		    dt_strerror(ret));
	dt_fail(file, line);
}

void dt_check_code(DAT_RETURN ret, DAT_RETURN code, const char *call, const char *file, int line)
{
	if (ret == code)
		return;
	print_error("%s:%d: %s\n\treturned 0x%08" PRIx32 " (%s)\n", file, line, call, ret,
		    dt_strerror(ret));
	print_error("\tnot 0x%08" PRIx32 " (%s)\n", code, dt_strerror(code));
	dt_fail(file, line);
}

void dt_check_fails(DAT_RETURN ret, DAT_RETURN type, const char *call, const char *file, int line)
{
	const DAT_RETURN expected_class = type == DAT_QUEUE_EMPTY ? 0 : DAT_CLASS_ERROR;

	if (DAT_GET_TYPE(ret) == type &&
	    (ret & ~(DAT_TYPE_MASK | DAT_SUBTYPE_MASK)) == expected_class)
		return;
	print_error("%s:%d: %s\n\treturned 0x%08" PRIx32 " (%s)\n", file, line, call, ret,
		    dt_strerror(ret));
	print_error("\tnot %s\n", dt_strerror(type | expected_class));
	dt_fail(file, line);
}

/* --- adapter --- */

const char *dt_adapter(void)
{
	const char *name = getenv("DAT_TEST_ADAPTER");

	return name && *name ? name : "soft-lo";
}

static bool has_iwarp_link; /* as the adapter that was opened last says */

bool dt_is_verbs(void)
{
	return strncmp(dt_adapter(), "verbs-", 6) == 0;
}

bool dt_is_iwarp(void)
{
	return has_iwarp_link;
}

static bool has_attr(const DAT_IA_ATTR *attr, const char *name, const char *value)
{
	for (DAT_COUNT i = 0; i < attr->num_transport_attr; i++)
		if (strcmp(attr->transport_attr[i].name, name) == 0 &&
		    strcmp(attr->transport_attr[i].value, value) == 0)
			return true;
	return false;
}

void dt_ia_open(struct dt_ia *ia)
{
	memset(ia, 0, sizeof(*ia));
	dt_ok(dat_ia_open((DAT_NAME_PTR)(uintptr_t)dt_adapter(), DT_ASYNC_QLEN, &ia->async,
			  &ia->ia));
	dt_ok(dat_ia_query(ia->ia, NULL, DAT_IA_FIELD_ALL, &ia->attr, DAT_PROVIDER_FIELD_ALL,
			   &ia->provider));
	has_iwarp_link =
		has_attr(&ia->attr, "link", "iWARP") || has_attr(&ia->attr, "transport", "tcp");
	dt_ok(dat_pz_create(ia->ia, &ia->pz));
}

void dt_ia_close(struct dt_ia *ia)
{
	copy_path_note(ia->pz);
	if (ia->pz)
		dt_ok(dat_pz_free(ia->pz));
	dt_ok(dat_ia_close(ia->ia, DAT_CLOSE_GRACEFUL_FLAG));
	memset(ia, 0, sizeof(*ia));
}

void dt_ia_abort(struct dt_ia *ia)
{
	copy_path_note(ia->pz);
	dt_ok(dat_ia_close(ia->ia, DAT_CLOSE_ABRUPT_FLAG));
	memset(ia, 0, sizeof(*ia));
}

int dt_ia_setup(void **state)
{
	static struct dt_ia ia;

	dt_ia_open(&ia);
	*state = &ia;
	return 0;
}

int dt_ia_teardown(void **state)
{
	dt_ia_close(*state);
	return 0;
}

/* --- memory --- */

/* The files behind shared buffers stay open while the buffers live, as in most programs that
 * share memory. */
struct dt_file {
	struct dt_file *next;
	void *p;
	int fd;
};
static struct dt_file *dt_files;
static pthread_mutex_t dt_files_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t dt_round_up(size_t len)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return len ? (len + page - 1) / page * page : page;
}

static int dt_sealed_file(size_t len)
{
	const int fd = memfd_create("dt", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_not_equal(fd, -1);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	return fd;
}

static void dt_file_remember(void *p, int fd)
{
	struct dt_file *file = malloc(sizeof(*file));

	assert_non_null(file);
	pthread_mutex_lock(&dt_files_lock);
	*file = (struct dt_file){.next = dt_files, .p = p, .fd = fd};
	dt_files = file;
	pthread_mutex_unlock(&dt_files_lock);
}

static void dt_file_forget(void *p)
{
	struct dt_file *file;

	pthread_mutex_lock(&dt_files_lock);
	for (struct dt_file **link = &dt_files; (file = *link); link = &file->next) {
		if (file->p != p)
			continue;
		*link = file->next;
		close(file->fd);
		free(file);
		break;
	}
	pthread_mutex_unlock(&dt_files_lock);
}

void *dt_mem_alloc(size_t len)
{
	const char *path = getenv("DAT_COPY");
	const size_t mapped = dt_round_up(len);
	void *p;

	if (!path || strcmp(path, "map") != 0) {
		p = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_ptr_not_equal(p, MAP_FAILED);
		return p;
	}
	const int fd = dt_sealed_file(mapped);

	p = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	dt_file_remember(p, fd);
	return p;
}

void dt_mem_free(void *p, size_t len)
{
	dt_file_forget(p);
	assert_int_equal(munmap(p, dt_round_up(len)), 0);
}

void dt_lmr_create(struct dt_ia *ia, DAT_PZ_HANDLE pz, void *p, size_t len, DAT_MEM_PRIV_FLAGS priv,
		   struct dt_buf *buf_out)
{
	const DAT_REGION_DESCRIPTION region = {.for_va = p};

	memset(buf_out, 0, sizeof(*buf_out));
	buf_out->p = p;
	buf_out->len = len;
	dt_ok(dat_lmr_create(ia->ia, DAT_MEM_TYPE_VIRTUAL, region, len, pz, priv, &buf_out->lmr,
			     &buf_out->lkey, &buf_out->rkey, NULL, NULL));
}

void dt_buf_create(struct dt_ia *ia, DAT_PZ_HANDLE pz, struct dt_buf *buf, size_t len,
		   DAT_MEM_PRIV_FLAGS priv)
{
	void *p = dt_mem_alloc(len);

	dt_lmr_create(ia, pz, p, len, priv, buf);
	buf->mapped = dt_round_up(len);
}

void dt_buf_free(struct dt_buf *buf)
{
	if (buf->lmr)
		dt_ok(dat_lmr_free(buf->lmr));
	if (buf->mapped)
		dt_mem_free(buf->p, buf->mapped);
	memset(buf, 0, sizeof(*buf));
}

/* Different at each place and for each seed, so that shifted and stale bytes show. */
static unsigned char dt_pattern(size_t i, uint32_t seed)
{
	uint32_t x = (uint32_t)i * 2246822519u + seed * 2654435761u;

	x ^= x >> 15;
	x *= 2246822519u;
	return (unsigned char)(x >> 24);
}

void dt_fill(void *p, size_t len, uint32_t seed)
{
	unsigned char *bytes = p;

	for (size_t i = 0; i < len; i++)
		bytes[i] = dt_pattern(i, seed);
}

void dt_check_pattern(const void *p, size_t len, uint32_t seed)
{
	const unsigned char *bytes = p;

	for (size_t i = 0; i < len; i++) {
		if (bytes[i] == dt_pattern(i, seed))
			continue;
		print_error("byte %zu of %zu is 0x%02x, not 0x%02x of pattern %" PRIu32 "\n", i,
			    len, bytes[i], dt_pattern(i, seed), seed);
		dt_fail(__FILE__, __LINE__);
	}
}

void dt_check_bytes(const void *p, size_t len, unsigned char value)
{
	const unsigned char *bytes = p;

	for (size_t i = 0; i < len; i++) {
		if (bytes[i] == value)
			continue;
		print_error("byte %zu of %zu is 0x%02x, not 0x%02x\n", i, len, bytes[i], value);
		dt_fail(__FILE__, __LINE__);
	}
}

DAT_LMR_TRIPLET dt_seg(const struct dt_buf *buf, size_t offset, size_t len)
{
	return (DAT_LMR_TRIPLET){.lmr_context = buf->lkey,
				 .virtual_address = (uintptr_t)buf->p + offset,
				 .segment_length = len};
}

DAT_RMR_TRIPLET dt_rseg(const struct dt_buf *buf, size_t offset, size_t len)
{
	return (DAT_RMR_TRIPLET){.rmr_context = buf->rkey,
				 .target_address = (uintptr_t)buf->p + offset,
				 .segment_length = len};
}

DAT_DTO_COOKIE dt_cookie(uint64_t value)
{
	return (DAT_DTO_COOKIE){.as_64 = value};
}

/* --- EVDs --- */

DAT_EVD_HANDLE dt_evd_create(struct dt_ia *ia, DAT_COUNT qlen, DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	dt_ok(dat_evd_create(ia->ia, qlen, DAT_HANDLE_NULL, flags, &evd));
	return evd;
}

DAT_EVENT dt_event(DAT_EVD_HANDLE evd)
{
	const uint64_t end = dt_now_us() + DT_WAIT_US;
	DAT_COUNT more;
	DAT_EVENT event;
	DAT_RETURN ret;

	do {
		memset(&event, 0, sizeof(event));
		ret = dat_evd_wait(evd, DT_WAIT_US, 1, &event, &more);
	} while (DAT_GET_TYPE(ret) == DAT_INTERRUPTED_CALL && dt_now_us() < end);
	if (DAT_GET_TYPE(ret) == DAT_INVALID_STATE)
		return dt_event_poll(evd);
	dt_check_ok(ret, "dat_evd_wait", __FILE__, __LINE__);
	assert_ptr_equal(event.evd_handle, evd);
	return event;
}

DAT_EVENT dt_event_poll(DAT_EVD_HANDLE evd)
{
	const uint64_t end = dt_now_us() + DT_WAIT_US;
	DAT_EVENT event;
	DAT_RETURN ret;

	for (;;) {
		memset(&event, 0, sizeof(event));
		ret = dat_evd_dequeue(evd, &event);
		if (ret != DAT_QUEUE_EMPTY || dt_now_us() > end)
			break;
		sched_yield();
	}
	dt_check_ok(ret, "dat_evd_dequeue", __FILE__, __LINE__);
	assert_ptr_equal(event.evd_handle, evd);
	return event;
}

void dt_no_event(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_RETURN ret = dat_evd_dequeue(evd, &event);

#ifdef OPENDAT_TEST_DAT2 /* D2-SRQ-03: each end of an endpoint with an SRQ */
	while (ret == DAT_SUCCESS && event.event_number == DAT_ASYNC_ERROR_EP_BROKEN)
		ret = dat_evd_dequeue(evd, &event);
#endif
	if (ret == DAT_SUCCESS)
		print_error("unexpected event 0x%05x\n", (unsigned)event.event_number);
	dt_check_fails(ret, DAT_QUEUE_EMPTY, "dat_evd_dequeue", __FILE__, __LINE__);
}

void dt_stays_empty(DAT_EVD_HANDLE evd)
{
	const uint64_t end = dt_now_us() + DT_QUIET_US;

	do {
		dt_no_event(evd);
		sched_yield();
	} while (dt_now_us() < end);
}

void dt_drain(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_RETURN ret;

	do {
		ret = dat_evd_dequeue(evd, &event);
	} while (ret == DAT_SUCCESS);
	dt_check_fails(ret, DAT_QUEUE_EMPTY, "dat_evd_dequeue", __FILE__, __LINE__);
}

/* --- threads --- */

#if defined(__SANITIZE_ADDRESS__) || DT_HAS(address_sanitizer)
#define STACK_LEFT 65536 /* bytes, more than the functions had that the thread was in */

void __asan_handle_no_return(void);
void __asan_unpoison_memory_region(void const volatile *address, size_t size);

void dt_stack_left(void *unused)
{
	uint8_t *here = __builtin_frame_address(0);

	(void)unused;
	__asan_unpoison_memory_region(here - STACK_LEFT, STACK_LEFT);
	__asan_handle_no_return(); /* the functions above this one */
}
#else
void dt_stack_left(void *unused)
{
	(void)unused;
}
#endif

/* --- time --- */

uint64_t dt_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

/* Does the thread sleep, according to the kernel? */
static bool dt_thread_sleeps(int tid)
{
	char path[64], text[256];
	const char *state;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len > 0 ? len : 0] = 0;
	state = strrchr(text, ')');
	return state && state[1] == ' ' && state[2] == 'S';
}

bool dt_thread_is_blocked(int tid)
{
	for (int i = 0; i < 5; i++) {
		if (!dt_thread_sleeps(tid))
			return false;
		usleep(500);
	}
	return true;
}

void dt_until(bool (*cond)(void *arg), void *arg)
{
	const uint64_t end = dt_now_us() + DT_WAIT_US;
	const struct timespec pause = {.tv_nsec = 200000};

	while (!cond(arg)) {
		if (dt_now_us() > end) {
			print_error("a condition did not come true in time\n");
			dt_fail(__FILE__, __LINE__);
		}
		nanosleep(&pause, NULL);
	}
}
