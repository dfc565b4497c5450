// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program that is not linked with libdat loads a plugin that is, and unloads it while an adapter
 * is open.
 */
#include "child.h"
#include "mock.h"

#include <dlfcn.h>

struct mock mock;

static DAT_RETURN plugin_use(void **plugin_out, DAT_IA_HANDLE *ia_out)
{
	DAT_RETURN (*open)(DAT_IA_HANDLE * ia_handle);

	*plugin_out = dlopen(library_get("PLUGIN"), RTLD_NOW | RTLD_LOCAL);
	must(*plugin_out != NULL);
	*(void **)&open = dlsym(*plugin_out, "plugin_open");
	must(open != NULL);
	return open(ia_out);
}

static void unload_and_load(void)
{
	DAT_IA_HANDLE first, second;
	void *plugin;
	pid_t pid;
	int status;

	conf_set_library("mock " U "2 nonthreadsafe default %s v \"\" \"\"\n",
			 library_get("MOCK_PROVIDER"));
	must(plugin_use(&plugin, &first) == DAT_SUCCESS);
	must(dlclose(plugin) == 0);
	/* Remaining fork handlers would run unmapped code here. */
	pid = fork();
	if (pid == 0)
		exit(0);
	must(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	/* The same registry is still loaded: the instance is open. */
	must(plugin_use(&plugin, &second) == DAT_SUCCESS);
	must(second != first);
	must(strcmp(mock.notes, "LIOO") == 0);
	exit(0);
}

/* COMPAT-20 IA-CLOSE-28 D2-LIB-12 */
static void plugin__unloaded_with_an_ia_open__process_goes_on(void **state)
{
	(void)state;
	child_run(unload_and_load);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(plugin__unloaded_with_an_ia_open__process_goes_on),
	};

	return cmocka_run_group_tests_name("registry plugin", tests, NULL, NULL);
}
