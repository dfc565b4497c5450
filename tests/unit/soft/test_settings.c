// SPDX-License-Identifier: BSD-2-Clause
/*
 * The reader of instance data and of the DAT_ variables: every valid form, every invalid form with
 * the word that is named, and which source takes precedence.
 */
#include "core/base/settings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const variables[] = {"DAT_TRANSPORT",
					"DAT_COPY",
					"DAT_PEERS",
					"DAT_PEER_TIMEOUT_MS",
					"DAT_SETUP_TIMEOUT_MS",
					"DAT_RNR_TIMEOUT_MS",
					"DAT_RMR_BIND",
					"DAT_CANCELLATION",
					"DAT_LINK_TIMEOUT_MS",
					"DAT_CRC",
					"DAT_HEADER",
					"DAT_WRITE_PROOF",
					"DAT_SPIN_US",
					"DAT_SOCKET_DIR",
					"DAT_SERVICE_CPUS"};

static int clear_environment(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	return 0;
}

static struct core_settings accept(const char *text, const char *device_expected)
{
	char device[CORE_DEVICE_MAX] = "untouched";
	struct core_settings settings;
	const char *why = NULL;

	memset(&settings, 0xEE, sizeof(settings));
	if (core_settings_parse(text, device, &settings, &why))
		fail_msg("\"%s\" was refused: %s", text, why);
	assert_string_equal(device, device_expected);
	return settings;
}

/* Refused, with a message that contains `part`, and nothing is written. */
static void refuse(const char *text, const char *part)
{
	char device[CORE_DEVICE_MAX] = "untouched";
	struct core_settings settings, before;
	const char *why = NULL;

	memset(&settings, 0xEE, sizeof(settings));
	before = settings;
	assert_int_equal(core_settings_parse(text, device, &settings, &why), -EINVAL);
	assert_non_null(why);
	if (!strstr(why, part))
		fail_msg("\"%s\": the message \"%s\" lacks \"%s\"", text, why, part);
	assert_string_equal(device, "untouched");
	assert_memory_equal(&settings, &before, sizeof(settings));
	assert_int_equal(core_settings_parse(text, device, &settings, NULL), -EINVAL);
}

static void parse__device_alone__defaults(void **state)
{
	struct core_settings settings = accept("lo", "lo");

	(void)state;
	assert_int_equal(settings.copy, CORE_COPY_AUTO);
	assert_int_equal(settings.peers, CORE_PEERS_ANY);
	assert_int_equal(settings.peer_timeout_ms, 5000);
	assert_int_equal(settings.setup_timeout_ms, 30000);
	assert_int_equal(settings.rnr_timeout_ms, 0);
	assert_int_equal(settings.link_timeout_ms, 25000); /* IWCM-34 */
	assert_int_equal(settings.crc, CORE_CRC_AUTO);
	assert_int_equal(settings.header, CORE_HEADER_ON);
	assert_int_equal(settings.write_proof, CORE_PROOF_ON);
	assert_int_equal(settings.rmr_bind, CORE_RMR_AUTO);
	assert_int_equal(settings.cancellation, CORE_CANCELLATION_AUTO);
	assert_int_equal(settings.spin_us, 20);
	assert_string_equal(settings.socket_dir, "");
	assert_int_equal(CPU_COUNT(&settings.service_cpus), 0);
}

/* IWCM-62: as long as the structure has room for it */
static void parse__socket_dir__absolute_path(void **state)
{
	char text[CORE_SOCKET_DIR_MAX + 32] = "lo socket_dir=";
	char *path = text + strlen(text);

	(void)state;
	assert_string_equal(accept("lo socket_dir=/run/dat spin_us=1", "lo").socket_dir,
			    "/run/dat");
	refuse("lo socket_dir=", "socket_dir: \"\" is not an absolute path");
	refuse("lo socket_dir=run/dat", "socket_dir: \"run/dat\" is not an absolute path");
	refuse("lo socket_dir=/a socket_dir=/b", "socket_dir is given twice");
	memset(path, '/', CORE_SOCKET_DIR_MAX);
	path[CORE_SOCKET_DIR_MAX] = '\0';
	refuse(text, "longer than 255 characters");
	path[CORE_SOCKET_DIR_MAX - 1] = '\0';
	assert_string_equal(accept(text, "lo").socket_dir, path);
	setenv("DAT_SOCKET_DIR", "/run/of environment", 1);
	assert_string_equal(accept(text, "lo").socket_dir, "/run/of environment");
	setenv("DAT_SOCKET_DIR", "run", 1);
	refuse("lo", "DAT_SOCKET_DIR: \"run\" is not an absolute path");
}

/* GEN-39 */
static void parse__service_cpus__list(void **state)
{
	static const char *const bad[] = {"",	  ",",	"0,",	",0",	  "0,,1",
					  "0-",	  "-1", "1-0",	"0-1-2",  "a",
					  "0x1",  "+1", "1024", "0-1024", "18446744073709551616",
					  "0-1;3"};
	struct core_settings settings = accept("lo service_cpus=0-1,3 spin_us=1", "lo");
	char text[64];

	(void)state;
	assert_int_equal(CPU_COUNT(&settings.service_cpus), 3);
	assert_true(CPU_ISSET(0, &settings.service_cpus) && CPU_ISSET(1, &settings.service_cpus) &&
		    CPU_ISSET(3, &settings.service_cpus));
	settings = accept("lo service_cpus=7,5-5,1023", "lo");
	assert_int_equal(CPU_COUNT(&settings.service_cpus), 3);
	assert_true(CPU_ISSET(5, &settings.service_cpus) && CPU_ISSET(7, &settings.service_cpus) &&
		    CPU_ISSET(1023, &settings.service_cpus));
	settings = accept("lo service_cpus=0-1023", "lo");
	assert_int_equal(CPU_COUNT(&settings.service_cpus), 1024);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "lo service_cpus=%s", bad[i]);
		refuse(text, "is not a list of processors from 0 to 1023, such as 0-1,3");
	}
	refuse("lo service_cpus=0 service_cpus=1", "service_cpus is given twice");
	setenv("DAT_SERVICE_CPUS", "2", 1);
	settings = accept("lo service_cpus=0-1", "lo");
	assert_int_equal(CPU_COUNT(&settings.service_cpus), 1);
	assert_true(CPU_ISSET(2, &settings.service_cpus));
	setenv("DAT_SERVICE_CPUS", "0 1", 1);
	refuse("lo", "DAT_SERVICE_CPUS: \"0 1\" is not a list of processors");
}

static void parse__forms_of_device__accepted(void **state)
{
	char longest[CORE_DEVICE_MAX];

	(void)state;
	accept("eth0", "eth0");
	accept("eth0 0", "eth0");
	accept("ib0 1", "ib0");
	accept("127.0.0.1", "127.0.0.1");
	accept("::1", "::1");
	accept("fe80::1%eth0", "fe80::1%eth0");
	accept(" \t eth0 \t 0 \n", "eth0");
	accept("copy=ring eth0", "eth0");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	accept(longest, longest);
}

static void parse__settings__applied(void **state)
{
	struct core_settings settings;

	(void)state;
	settings = accept("192.0.2.2 copy=ring peer_timeout_ms=100", "192.0.2.2");
	assert_int_equal(settings.copy, CORE_COPY_RING);
	assert_int_equal(settings.peer_timeout_ms, 100);
	assert_int_equal(settings.spin_us, 20);
	settings =
		accept("eth0 0 copy=cma spin_us=0 setup_timeout_ms=1 rnr_timeout_ms=007", "eth0");
	assert_int_equal(settings.copy, CORE_COPY_CMA);
	assert_int_equal(settings.spin_us, 0);
	assert_int_equal(settings.setup_timeout_ms, 1);
	assert_int_equal(settings.rnr_timeout_ms, 7);
	assert_int_equal(accept("lo copy=map", "lo").copy, CORE_COPY_MAP);
	assert_int_equal(accept("lo", "lo").transport, CORE_TRANSPORT_AUTO);
	assert_int_equal(accept("lo transport=shm", "lo").transport, CORE_TRANSPORT_SHM);
	assert_int_equal(accept("lo transport=tcp", "lo").transport, CORE_TRANSPORT_TCP);
	assert_int_equal(accept("lo transport=auto", "lo").transport, CORE_TRANSPORT_AUTO);
	assert_int_equal(accept("lo copy=auto", "lo").copy, CORE_COPY_AUTO);
	assert_int_equal(accept("lo peers=user", "lo").peers, CORE_PEERS_USER);
	assert_int_equal(accept("lo peers=any", "lo").peers, CORE_PEERS_ANY);
	assert_int_equal(accept("lo link_timeout_ms=2000", "lo").link_timeout_ms, 2000);
	assert_int_equal(accept("lo crc=auto", "lo").crc, CORE_CRC_AUTO);
	assert_int_equal(accept("lo crc=on", "lo").crc, CORE_CRC_ON);
	assert_int_equal(accept("lo crc=off", "lo").crc, CORE_CRC_OFF);
	assert_int_equal(accept("lo header=off", "lo").header, CORE_HEADER_OFF);
	assert_int_equal(accept("lo header=on", "lo").header, CORE_HEADER_ON);
	assert_int_equal(accept("lo write_proof=on", "lo").write_proof, CORE_PROOF_ON);
	assert_int_equal(accept("lo write_proof=byte", "lo").write_proof, CORE_PROOF_BYTE);
	assert_int_equal(accept("lo write_proof=off", "lo").write_proof, CORE_PROOF_OFF);
	assert_int_equal(accept("lo rmr_bind=window", "lo").rmr_bind, CORE_RMR_WINDOW);
	assert_int_equal(accept("lo rmr_bind=registration", "lo").rmr_bind, CORE_RMR_REGISTRATION);
	assert_int_equal(accept("lo cancellation=never", "lo").cancellation,
			 CORE_CANCELLATION_NEVER);
	assert_int_equal(accept("lo peer_timeout_ms=1", "lo").peer_timeout_ms, 1);
	assert_int_equal(accept("lo peer_timeout_ms=600000", "lo").peer_timeout_ms, 600000);
}

static void parse__no_device__refused(void **state)
{
	(void)state;
	refuse("", "no device");
	refuse(NULL, "no device");
	refuse(" \t", "no device");
	refuse("copy=cma", "no device");
}

static void parse__bad_word__refused_and_named(void **state)
{
	char text[12000];

	(void)state;
	refuse("eth0 eth1", "\"eth1\" after the device \"eth0\"");
	refuse("eth0 0 1", "\"1\"");
	refuse("eth0 1a", "\"1a\"");
	refuse("eth0 -1", "\"-1\"");
	refuse("lo colour=red", "\"colour=red\"");
	refuse("lo Copy=ring", "\"Copy=ring\"");
	refuse("lo =ring", "\"=ring\"");
	refuse("lo cop=ring", "no such setting");
	refuse("lo copy_=ring", "no such setting");
	refuse("lo transport=udp", "transport: \"udp\" is not auto, shm or tcp");
	refuse("lo copy=", "copy: \"\" is not auto, map, cma or ring");
	refuse("lo link_timeout_ms=1999", "not a number from 2000 to 600000 (ms)");
	refuse("lo crc=1", "crc: \"1\" is not auto, on or off");
	refuse("lo write_proof=read", "write_proof: \"read\" is not on, byte or off");
	refuse("lo rmr_bind=mw", "rmr_bind: \"mw\" is not auto, window or registration");
	refuse("lo copy=rings", "copy: \"rings\" is not auto, map, cma or ring");
	refuse("lo copy=rin", "copy: \"rin\"");
	refuse("lo copy=ring=1", "copy: \"ring=1\"");
	refuse("lo copy=ring copy=ring", "copy is given twice");
	refuse("lo copy = ring", "\"copy\"");
	refuse("lo peer_timeout_ms=0",
	       "peer_timeout_ms: \"0\" is not a number from 1 to 600000 (ms)");
	refuse("lo peer_timeout_ms=600001", "peer_timeout_ms: \"600001\"");
	refuse("lo peer_timeout_ms=18446744073709551617", "peer_timeout_ms");
	refuse("lo peer_timeout_ms=", "peer_timeout_ms: \"\"");
	refuse("lo peer_timeout_ms=+5", "\"+5\"");
	refuse("lo peer_timeout_ms=0x10", "\"0x10\"");
	refuse("lo peer_timeout_ms=5ms", "\"5ms\"");
	refuse("lo spin_us=-1", "spin_us: \"-1\"");

	/* very long words: refused, and the message does not overflow */
	memset(text, 'y', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	refuse(text, "longer than 63");
	text[CORE_DEVICE_MAX] = '\0';
	refuse(text, "longer than 63");
	text[CORE_DEVICE_MAX] = 'y';
	memcpy(text, "lo ", 3);
	refuse(text, "after the device \"lo\"");
	memcpy(text, "lo copy=", 8);
	refuse(text, "copy: \"yyy");
	text[7] = 'y';
	text[100] = '=';
	refuse(text, "no such setting");
}

static void parse__environment__wins(void **state)
{
	struct core_settings settings;

	(void)state;
	setenv("DAT_COPY", "cma", 1);
	setenv("DAT_PEER_TIMEOUT_MS", "77", 1);
	setenv("DAT_SETUP_TIMEOUT_MS", "78", 1);
	setenv("DAT_RNR_TIMEOUT_MS", "79", 1);
	setenv("DAT_SPIN_US", "80", 1);
	settings = accept("lo copy=ring peer_timeout_ms=5", "lo");
	assert_int_equal(settings.copy, CORE_COPY_CMA);
	assert_int_equal(settings.peer_timeout_ms, 77);
	assert_int_equal(settings.setup_timeout_ms, 78);
	assert_int_equal(settings.rnr_timeout_ms, 79);
	assert_int_equal(settings.spin_us, 80);

	/* an empty variable is one that is not set */
	setenv("DAT_COPY", "", 1);
	assert_int_equal(accept("lo copy=ring", "lo").copy, CORE_COPY_RING);
}

static void parse__bad_environment__refused_and_named(void **state)
{
	(void)state;
	setenv("DAT_COPY", "fast", 1);
	refuse("lo copy=ring", "DAT_COPY: \"fast\" is not auto, map, cma or ring");
	unsetenv("DAT_COPY");
	setenv("DAT_PEER_TIMEOUT_MS", "0", 1);
	refuse("lo", "DAT_PEER_TIMEOUT_MS: \"0\" is not a number from 1 to 600000 (ms)");
	setenv("DAT_PEER_TIMEOUT_MS", "5 ", 1);
	refuse("lo", "DAT_PEER_TIMEOUT_MS: \"5 \"");
	/* an invalid line is reported even if the environment would have overridden it */
	setenv("DAT_PEER_TIMEOUT_MS", "5", 1);
	refuse("lo peer_timeout_ms=x", "peer_timeout_ms: \"x\"");
}

static void describe__every_setting__one_line(void **state)
{
	char text[4096], cut[40];
	size_t len = core_settings_describe(text, sizeof(text));
	size_t lines = 0;

	(void)state;
	assert_true(len < sizeof(text));
	assert_int_equal(strlen(text), len);
	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	assert_int_equal(lines, sizeof(variables) / sizeof(variables[0]));
	for (size_t i = 0; i < lines; i++)
		assert_non_null(strstr(text, variables[i]));
	assert_non_null(strstr(text, "auto, map, cma or ring"));
	assert_non_null(strstr(text, "auto, window or registration"));
	assert_non_null(strstr(text, "1 to 600000 ms"));

	/* like snprintf: returns the full length and writes what fits */
	assert_int_equal(core_settings_describe(NULL, 0), len);
	memset(cut, 'x', sizeof(cut));
	assert_int_equal(core_settings_describe(cut, sizeof(cut) - 1), len);
	assert_int_equal(strlen(cut), sizeof(cut) - 2);
	assert_memory_equal(cut, text, sizeof(cut) - 2);
	assert_int_equal(cut[sizeof(cut) - 1], 'x');
}

/* The port of a device behind rdma-core */
static void settings_port__as_named__or_none(void **state)
{
	(void)state;
	assert_int_equal(core_settings_port("mlx5_0 1"), 1);
	assert_int_equal(core_settings_port("eth0 0 spin_us=5"), 0);
	assert_int_equal(core_settings_port("spin_us=5 mlx5_0 2"), 2);
	assert_int_equal(core_settings_port("mlx5_0"), 0);
	assert_int_equal(core_settings_port("mlx5_0 300"), 0);
	assert_int_equal(core_settings_port(NULL), 0);
}

static char reported[256];

static void tell(const char *name, int len)
{
	size_t at = strlen(reported);

	snprintf(reported + at, sizeof(reported) - at, "%.*s;", len, name);
}

/* A misspelt variable is reported by its whole name; valid ones are not. */
static void unknown__misspelt__reported(void **state)
{
	static const char *const odd[] = {"DAT_COPYING", "DAT_COP", "DAT_", "DAT_copy"};

	(void)state;
	reported[0] = '\0';
	core_settings_unknown(tell);
	assert_string_equal(reported, "");
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		setenv(variables[i], "1", 1);
	setenv("DAT_OVERRIDE", "/nowhere", 1);
	setenv("DAT_DBG_TYPE", "1", 1);
	setenv("DAT_DBG_DEST", "1", 1);
	setenv("XDAT_COPYING", "1", 1);
	core_settings_unknown(tell);
	assert_string_equal(reported, "");
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		char expected[64];

		snprintf(expected, sizeof(expected), "%s;", odd[i]);
		setenv(odd[i], "", 1);
		core_settings_unknown(tell);
		assert_string_equal(reported, expected);
		reported[0] = '\0';
		unsetenv(odd[i]);
	}
	unsetenv("DAT_OVERRIDE");
	unsetenv("DAT_DBG_TYPE");
	unsetenv("DAT_DBG_DEST");
	clear_environment(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_port__as_named__or_none),
		cmocka_unit_test_setup(parse__device_alone__defaults, clear_environment),
		cmocka_unit_test_setup_teardown(parse__service_cpus__list, clear_environment,
						clear_environment),
		cmocka_unit_test_setup_teardown(parse__socket_dir__absolute_path, clear_environment,
						clear_environment),
		cmocka_unit_test_setup(parse__forms_of_device__accepted, clear_environment),
		cmocka_unit_test_setup(parse__settings__applied, clear_environment),
		cmocka_unit_test_setup(parse__no_device__refused, clear_environment),
		cmocka_unit_test_setup(parse__bad_word__refused_and_named, clear_environment),
		cmocka_unit_test_setup(parse__environment__wins, clear_environment),
		cmocka_unit_test_setup(parse__bad_environment__refused_and_named,
				       clear_environment),
		cmocka_unit_test_setup(unknown__misspelt__reported, clear_environment),
		cmocka_unit_test_setup(describe__every_setting__one_line, clear_environment),
	};

	return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
