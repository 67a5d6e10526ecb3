/*
 * die - the end of a program that cannot go on: "PROGRAM: " and one sentence on
 * stderr, status 1.
 */
#pragma once

_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
