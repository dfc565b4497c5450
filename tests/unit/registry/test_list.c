// SPDX-License-Identifier: BSD-2-Clause
/*
 * dat_registry_list_providers, and which registry file it reads.
 */
#include "list_use.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

struct mock mock;

static bool is_untouched(const DAT_PROVIDER_INFO *block)
{
	const unsigned char *byte = (const unsigned char *)block;
	size_t i;

	for (i = 0; i < sizeof(*block); i++)
		if (byte[i] != 0xee)
			return false;
	return true;
}

static bool is_block(const DAT_PROVIDER_INFO *block, const char *name, DAT_UINT32 minor,
		     DAT_BOOLEAN is_thread_safe)
{
	return strcmp(block->ia_name, name) == 0 &&
	       block->dapl_version_major == DAT_VERSION_MAJOR &&
	       block->dapl_version_minor == minor && block->is_thread_safe == is_thread_safe;
}

#define THREE                                                                                      \
	"a " U "2 threadsafe default %s v \"\" \"\"\n"                                             \
	"b " U "0 nonthreadsafe default %s v \"\" \"\"\n"                                          \
	"c " U "2 nonthreadsafe default %s v \"\" \"\"\n"

static void foreign_conf(const char *lines)
{
	conf_set_library(lines, library_get("MOCK_FOREIGN"));
}

/* --- listing --- */

static void list_three(void)
{
	foreign_conf(THREE);
	must(list(ROOM) == DAT_SUCCESS);
	must(count == 3);
	must(is_block(&blocks[0], "a", 2, DAT_TRUE));
	must(is_block(&blocks[1], "b", 0, DAT_FALSE));
	must(is_block(&blocks[2], "c", 2, DAT_FALSE));
	must(is_untouched(&blocks[3]));
	/* Exactly as many. Slots after them are not read. */
	slots[3] = (DAT_PROVIDER_INFO *)(uintptr_t)8;
	must(dat_registry_list_providers(4, &count, slots) == DAT_SUCCESS);
	must(list(3) == DAT_SUCCESS && count == 3);
	must(mock.notes[0] == '\0');
}

/* REG-LIST-01 REG-LIST-02 REG-LIST-03 REG-LIST-04 REG-LIST-15 REG-LIST-16 CONF-06 CONF-34
 * D2-OPEN-12 D2-CONF-01 D2-CONF-22; the version of the provider is any word: D2-CONF-04 */
static void registry_list__three_entries__as_in_the_file(void **state)
{
	(void)state;
	child_run(list_three);
}

static void list_short(void)
{
	foreign_conf(THREE);
#if DAT_VERSION_MAJOR == 2
	must(list(2) == DAT_SUCCESS && count == 2);
#else
	must_fail(list(2), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	must(count == 3);
#endif
	must(is_block(&blocks[0], "a", 2, DAT_TRUE));
	must(is_block(&blocks[1], "b", 0, DAT_FALSE));
	must(is_untouched(&blocks[2]));
}

/* REG-LIST-05 REG-LIST-06 REG-LIST-07; D2-OPEN-13 */
static void registry_list__too_little_room__invalid_parameter_and_count(void **state)
{
	(void)state;
	child_run(list_short);
}

static void list_bad(void)
{
	foreign_conf(THREE);
	count = -1;
	must_fail(dat_registry_list_providers(ROOM, &count, NULL), DAT_INVALID_PARAMETER,
		  DAT_INVALID_ARG3);
	must(count == 3);
	must_fail(list(0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	must(count == 3);
	must_fail(list(-1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	must(count == 3);
	must_fail(dat_registry_list_providers(ROOM, NULL, slots), DAT_INVALID_PARAMETER,
		  DAT_INVALID_ARG2);
	for (int i = 0; i < 3; i++) {
		slots[i] = NULL;
		must_fail(dat_registry_list_providers(ROOM, &count, slots), DAT_INVALID_PARAMETER,
			  DAT_INVALID_ARG3);
		slots[i] = &blocks[i];
	}
}

/* REG-LIST-08 REG-LIST-09 REG-LIST-10 REG-LIST-11 REG-LIST-12 D2-OPEN-14 D2-OPEN-15 */
static void registry_list__bad_arguments__invalid_parameter(void **state)
{
	(void)state;
	child_run(list_bad);
}

static void list_missing(void)
{
	must(setenv("DAT_OVERRIDE", "/nonexistent/dat.conf", 1) == 0);
	must_fail(list(ROOM), DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	must_fail(open_simply("soft-lo"), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

/* REG-LIST-13 CONF-04 */
static void registry_list__override_names_no_file__internal_error(void **state)
{
	(void)state;
	child_run(list_missing);
}

static void list_empty(void)
{
	conf_set("# nothing\n");
	must(list(1) == DAT_SUCCESS);
	must(count == 0);
	must_fail(list(0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	must(count == 0);
}

/* REG-LIST-14 CONF-36 */
static void registry_list__empty_file__success(void **state)
{
	(void)state;
	child_run(list_empty);
}

static void list_hidden(void)
{
	foreign_conf("k k1.2 threadsafe default %s v \"\" \"\"\n"
		     "two " OTHER_U "0 threadsafe default %s v \"\" \"\"\n"
		     "non " U "2 threadsafe nondefault %s v \"\" \"\"\n"
		     "bad " U "2 threadsafe default %s v\n"
		     "a " U "2 threadsafe default %s v \"\" \"\"\n"
		     "a " U "2 threadsafe default %s v2 \"x\" \"\"\n"
		     "a " U "2 nonthreadsafe default %s v \"\" \"\"\n"
		     "a " U "3 threadsafe default %s v \"\" \"\"\n");
	must(list(ROOM) == DAT_SUCCESS);
	must(count == 3);
	must(is_block(&blocks[0], "a", 2, DAT_TRUE));
	must(is_block(&blocks[1], "a", 2, DAT_FALSE));
	must(is_block(&blocks[2], "a", 3, DAT_TRUE));
}

/* CONF-19 CONF-21 CONF-24 CONF-29 CONF-30 CONF-32 CONF-33 D2-CONF-02 */
static void registry_list__lines_that_do_not_count__not_listed(void **state)
{
	(void)state;
	child_run(list_hidden);
}

static void list_after_hundred(void)
{
	static char text[64 * 1024];
	size_t len = 0;
	int i;

	for (i = 0; i < 100; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"v%d " OTHER_U
					"0 nonthreadsafe default /nonexistent/v%d.so v \"\" \"\"\n"
					"m%d " OTHER_U "0 nonthreadsafe default %s v \"\" \"\"\n",
					i, i, i, library_get("MOCK_SECOND"));
	snprintf(text + len, sizeof(text) - len,
		 "mine " U "2 nonthreadsafe default %s v \"\" \"\"\n", library_get("MOCK_FOREIGN"));
	conf_set(text);
	must(list(8) == DAT_SUCCESS);
	must(count == 1);
	must(open_simply("mine") == DAT_SUCCESS);
	must(strcmp(mock.notes, "LIO") == 0);
	must(dlopen(library_get("MOCK_SECOND"), RTLD_LAZY | RTLD_NOLOAD) == NULL);
}

/* COMPAT-35 COMPAT-36 */
static void registry_list__after_a_hundred_other_lines__ours_within_eight(void **state)
{
	(void)state;
	child_run(list_after_hundred);
}

static void list_then_open(void)
{
	int i;

	foreign_conf(THREE "d " U "9 nonthreadsafe default %s v \"\" \"\"\n");
	must(list(ROOM) == DAT_SUCCESS && count == 4);
	for (i = 0; i < count; i++) {
		DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
		DAT_IA_HANDLE ia;

		must(dat_ia_openv(blocks[i].ia_name, 8, &evd, &ia, DAT_VERSION_MAJOR,
				  blocks[i].dapl_version_minor,
				  blocks[i].is_thread_safe) == DAT_SUCCESS);
		must(dat_ia_openv(blocks[i].ia_name, 8, &evd, &ia, DAT_VERSION_MAJOR, 0,
				  blocks[i].is_thread_safe) == DAT_SUCCESS);
	}
}

/* REG-LIST-17 */
static void registry_list__each_entry__opens(void **state)
{
	(void)state;
	child_run(list_then_open);
}

static void read_once(void)
{
	foreign_conf(THREE);
	must(list(ROOM) == DAT_SUCCESS && count == 3);
	conf_set("");
	must(list(ROOM) == DAT_SUCCESS && count == 3);
	must(open_simply("c") == DAT_SUCCESS);
}

/* CONF-39 */
static void registry_list__file_changed__still_the_first(void **state)
{
	(void)state;
	child_run(read_once);
}

static pthread_barrier_t barrier;

static void *thread_list(void *result)
{
	DAT_PROVIDER_INFO mine[8], *mine_slots[8];
	DAT_COUNT mine_count = 0;
	int i;

	for (i = 0; i < 8; i++)
		mine_slots[i] = &mine[i];
	pthread_barrier_wait(&barrier);
	*(DAT_RETURN *)result = dat_registry_list_providers(8, &mine_count, mine_slots);
	if (mine_count != 3 || !is_block(&mine[2], "c", 2, DAT_FALSE))
		*(DAT_RETURN *)result = DAT_CLASS_ERROR;
	return NULL;
}

static void parallel_list(void)
{
	DAT_RETURN results[8];
	pthread_t threads[8];
	int i;

	foreign_conf(THREE);
	pthread_barrier_init(&barrier, NULL, 8);
	for (i = 0; i < 8; i++)
		must(pthread_create(&threads[i], NULL, thread_list, &results[i]) == 0);
	for (i = 0; i < 8; i++) {
		pthread_join(threads[i], NULL);
		must(results[i] == DAT_SUCCESS);
	}
}

/* REG-LIST-20 CONF-40 */
static void registry_list__parallel_first_calls__all_see_the_file(void **state)
{
	(void)state;
	child_run(parallel_list);
}

/* --- which file --- */

/* A private /etc, which disappears with the process. */
static void etc_enter(void)
{
	if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
		_exit(CHILD_SKIP);
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("tmpfs", "/etc", "tmpfs", 0, NULL) != 0)
		_exit(CHILD_SKIP);
	unsetenv("DAT_OVERRIDE");
}

static void file_write(const char *path, const char *name)
{
	FILE *file = fopen(path, "w");

	must(file != NULL);
	must(fprintf(file, "%s " U "2 nonthreadsafe default %s v \"\" \"\"\n", name,
		     library_get("MOCK_FOREIGN")) > 0);
	must(fclose(file) == 0);
}

static void default_file(void)
{
	etc_enter();
	must(mkdir("/etc/dat", 0755) == 0);
	file_write("/etc/dat/dat.conf", "solaris");
	file_write("/etc/dat.conf", "linux");
	must(list(ROOM) == DAT_SUCCESS && count == 1);
	must(is_block(&blocks[0], "linux", 2, DAT_FALSE));
	must(open_simply("linux") == DAT_SUCCESS);
}

/* CONF-01 */
static void registry_list__no_override__etc_dat_conf(void **state)
{
	(void)state;
	child_run(default_file);
}

/* The folder of the build's own configuration becomes private, too. */
static void copy_enter(void)
{
	if (strcmp(REGISTRY_SYSCONFDIR, "/etc") == 0)
		_exit(CHILD_SKIP); /* the copy is the default file */
	etc_enter();
	if (mount("tmpfs", REGISTRY_SYSCONFDIR, "tmpfs", 0, NULL) != 0)
		_exit(CHILD_SKIP);
}

static void copy_of_file(void)
{
	copy_enter();
	file_write("/etc/dat.conf", "linux");
	file_write(REGISTRY_SYSCONFDIR "/dat.conf", "copy");
	must(list(ROOM) == DAT_SUCCESS && count == 1);
	must(is_block(&blocks[0], "copy", 2, DAT_FALSE));
	must(open_simply("copy") == DAT_SUCCESS);
}

/* CONF-01 D2-CONF-07: the copy in the folder that was chosen when libdat was built */
static void registry_list__no_override__copy_of_the_build_first(void **state)
{
	(void)state;
	child_run(copy_of_file);
}

static void solaris_file(void)
{
	etc_enter();
	must(mkdir("/etc/dat", 0755) == 0);
	file_write("/etc/dat/dat.conf", "solaris");
	must(list(ROOM) == DAT_SUCCESS && count == 1);
	must(is_block(&blocks[0], "solaris", 2, DAT_FALSE));
}

/* CONF-02 D2-CONF-07 */
static void registry_list__no_etc_dat_conf__solaris_place(void **state)
{
	(void)state;
	child_run(solaris_file);
}

static void override_file(void)
{
	etc_enter();
	file_write("/etc/dat.conf", "linux");
	foreign_conf(THREE);
	must(list(ROOM) == DAT_SUCCESS && count == 3);
	must_fail(open_simply("linux"), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

/* CONF-03 */
static void registry_list__override__only_its_entries(void **state)
{
	(void)state;
	child_run(override_file);
}

/* Standard output and error go into that file. */
static int output_keep(void)
{
	int file = memfd_create("output", MFD_CLOEXEC);

	must(file >= 0);
	must(dup2(file, STDOUT_FILENO) >= 0 && dup2(file, STDERR_FILENO) >= 0);
	return file;
}

static void list_builtin(void)
{
	static const char *const ignored[] = {"DAPL_DBG_TYPE", "DAPL_DBG_DEST", "DAPL_IFNAME",
					      "DAPL_MAX_INLINE", "DAPL_ACK_RETRY"};
	struct stat found;
	int output;

	etc_enter();
	output = output_keep();
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		must(setenv(ignored[i], "0xffff", 1) == 0);
	must(list(ROOM) == DAT_SUCCESS && count > 0 && count <= 8);
	for (int i = 0; i < count; i++) {
		bool is_second = strncmp(blocks[i].ia_name, "ofa-v2-", 7) == 0;

		must(blocks[i].dapl_version_major == DAT_VERSION_MAJOR);
		must(is_second == (DAT_VERSION_MAJOR == 2));
	}
	must(fstat(output, &found) == 0 && found.st_size == 0);
}

/* CONF-43 D2-CONF-09 D2-CONF-11 D2-CONF-22 */
static void registry_list__no_file__built_in_names_and_no_output(void **state)
{
	(void)state;
	child_run(list_builtin);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(registry_list__three_entries__as_in_the_file),
		cmocka_unit_test(registry_list__too_little_room__invalid_parameter_and_count),
		cmocka_unit_test(registry_list__bad_arguments__invalid_parameter),
		cmocka_unit_test(registry_list__override_names_no_file__internal_error),
		cmocka_unit_test(registry_list__empty_file__success),
		cmocka_unit_test(registry_list__lines_that_do_not_count__not_listed),
		cmocka_unit_test(registry_list__after_a_hundred_other_lines__ours_within_eight),
		cmocka_unit_test(registry_list__each_entry__opens),
		cmocka_unit_test(registry_list__file_changed__still_the_first),
		cmocka_unit_test(registry_list__parallel_first_calls__all_see_the_file),
		cmocka_unit_test(registry_list__no_override__etc_dat_conf),
		cmocka_unit_test(registry_list__no_override__copy_of_the_build_first),
		cmocka_unit_test(registry_list__no_etc_dat_conf__solaris_place),
		cmocka_unit_test(registry_list__override__only_its_entries),
		cmocka_unit_test(registry_list__no_file__built_in_names_and_no_output),
	};

	return cmocka_run_group_tests_name("registry list", tests, NULL, NULL);
}
