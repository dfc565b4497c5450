// SPDX-License-Identifier: BSD-2-Clause
/*
 * Nothing remains of a closed instance, and a process can end with one open. Called with an
 * argument this program is the process of test IA-CLOSE-28.
 */
#include "waiter.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static const char *self;

/* --- residue --- */

struct usage {
	int descriptors, threads, shared;
	long pages;
};

static int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int count = 0;

	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

static struct usage measure(void)
{
	struct usage usage = {.descriptors = count_entries("/proc/self/fd"),
			      .threads = count_entries("/proc/self/task"),
			      .shared = count_entries("/dev/shm")};
	FILE *file = fopen("/proc/self/statm", "re");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld", &usage.pages), 1);
	fclose(file);
	return usage;
}

/* The kernel may still list a thread that was joined. */
static bool has_threads(void *arg)
{
	return count_entries("/proc/self/task") <= *(int *)arg;
}

/* IA-CLOSE-20 GEN-16 IA-OPEN-43 D2-OPEN-09: with few descriptors from the first measurement on */
static void ia_close__thousand_cycles__nothing_remains(void **state)
{
	const uint64_t end = dt_now_us() + 4000000; /* fewer on a slow machine */
	DAT_IA_HANDLE first = DAT_HANDLE_NULL;
	struct usage before = {0}, after;
	struct rlimit limit, few;
	struct dt_ia ia;
	struct dt_buf buf;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	few.rlim_cur = 50;
	for (int i = 0; i < 1050 && (i < 450 || dt_now_us() < end); i++) {
		if (i == 50) {
			before = measure();
			assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		}
		dt_ia_open(&ia);
		if (i == 50)
			first = ia.ia;
		else
			assert_ptr_not_equal(ia.ia, first);
		dt_buf_create(&ia, ia.pz, &buf, 4096, DAT_MEM_PRIV_ALL_FLAG);
		if (i % 2) {
			dt_buf_free(&buf);
			dt_ia_close(&ia);
		} else {
			dt_ia_abort(&ia);
			dt_mem_free(buf.p, buf.mapped);
		}
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	dt_until(has_threads, &before.threads);
	after = measure();
	assert_int_equal(after.descriptors, before.descriptors);
	assert_true(after.shared <= before.shared);
	if (!DT_SLOW) /* these keep freed memory for a while */
		assert_true(after.pages - before.pages < 4096);
}

/* --- the end of the process --- */

/* What the program does when called with an argument. */
static int end_with_everything_open(const char *how)
{
	struct dt_pair pair;
	struct dt_buf buf;
	struct waiter waiter[2];

	dt_pair_open(&pair);
	dt_buf_create(&pair.ia, pair.ia.pz, &buf, 1u << 20, DAT_MEM_PRIV_ALL_FLAG);
	start_waiter(&waiter[0], pair.ia.async);
	start_waiter(&waiter[1], pair.b.conn);
	for (int i = 0; i < 8; i++)
		dt_ok(conf_post_write(&pair, dt_seg(&buf, 0, buf.len / 2),
				      dt_rseg(&buf, buf.len / 2, buf.len / 2), 1));
	if (strcmp(how, "return") == 0)
		return 0;
	if (strcmp(how, "exec") == 0)
		execl("/bin/true", "true", (char *)NULL);
	if (strcmp(how, "exit") == 0)
		exit(0);
	return 3;
}

static void call_ourselves(struct dt_peer *peer, void *arg)
{
	(void)peer;
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* the instance is open at the end */
	unsetenv("OPENDAT_TEST_BYTES");		     /* its copies are not counted */
	execl(self, self, (char *)arg, (char *)NULL);
	_exit(4);
}

/* IA-CLOSE-28 */
static void process__ends_with_an_instance_open__at_once(void **state)
{
	static char *const ways[] = {"return", "exit", "exec"};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(ways); i++) {
		struct dt_peer peer;

		dt_peer_start(&peer, call_ourselves, ways[i]);
		dt_peer_join(&peer);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_close__thousand_cycles__nothing_remains),
		cmocka_unit_test(process__ends_with_an_instance_open__at_once),
	};

	if (argc > 1)
		return end_with_everything_open(argv[1]);
	self = argv[0];
	return cmocka_run_group_tests_name("ia residue", tests, NULL, NULL);
}
