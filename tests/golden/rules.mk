# Stored inputs and expected outputs; see tests/golden/kit.h.
golden_src := $(sort $(wildcard tests/golden/*.c))

$(B)/tests/check_kit: $(call obj,$(golden_src) $(lib_src)) $(B)/libsupport.a
	$(call link,$^)

.PHONY: check-kit
check-kit: $(B)/tests/check_kit ## the conformance kit: KIT=DIR [ONLY=models,tok,...] [MATCH=regex]
	$(RUN) $(B)/tests/check_kit $(KIT) '$(ONLY)' '$(MATCH)'

# Each feature of the template language, see tests/golden/template/check_template.c.
template_src := tests/golden/template/check_template.c $(wildcard common/*.c daemon/template/*.c)
$(B)/tests/check_template: $(call obj,$(template_src))
	$(call link,$^)
-include $(B)/tests/golden/template/check_template.d

.PHONY: check-golden check-golden-template
check-golden: check-golden-template ## stored inputs and their expected outputs
check-golden-template: $(B)/tests/check_template
	$(RUN) $(B)/tests/check_template $(sort $(wildcard tests/golden/template/*.test))

# Tiny models of every family against an independent computation, see tests/golden/logits.
$(B)/tests/check_logits: $(call obj,tests/golden/logits/check_logits.c $(lib_src)) $(B)/libsupport.a
	$(call link,$^)
-include $(B)/tests/golden/logits/check_logits.d

.PHONY: check-golden-logits
check-golden: check-golden-logits
check-golden-logits: $(B)/tests/check_logits
	$(RUN) $(B)/tests/check_logits tests/golden/logits

# Tiny files of every family against llama.cpp's logits, see tests/golden/logits/families.
$(B)/tests/check_families: $(call obj,tests/golden/logits/check_families.c $(lib_src)) $(B)/libsupport.a
	$(call link,$^)
-include $(B)/tests/golden/logits/check_families.d

.PHONY: check-golden-families
check-golden: check-golden-families
check-golden-families: $(B)/tests/check_families
	$(RUN) $(B)/tests/check_families tests/golden/logits/families
