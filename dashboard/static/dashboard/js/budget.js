// A slider beside the field of the latency budget: logarithmic, from the lowest measured latency to the highest.
// The field is what is sent; without this script the slider stays hidden.
for (const slider of document.querySelectorAll("input[data-mirrors]")) {
  const field = slider.form.elements[slider.dataset.mirrors];
  const lowest = Number(slider.dataset.least), ratio = Number(slider.dataset.most) / lowest;
  const name = () => slider.setAttribute("aria-valuetext", field.value ? `${field.value} ms` : "no budget");
  const show = () => {
    const value = Number(field.value.replace(",", "."));
    if (value > 0) slider.value = String(100 * Math.log(value / lowest) / Math.log(ratio));
    name();
  };
  if (!(lowest > 0 && ratio > 1)) continue;
  slider.hidden = false;
  slider.addEventListener("input", () => {
    // the end stands for no budget, so that everything is taken in
    field.value = slider.value === slider.max ? "" : Number((lowest * ratio ** (slider.value / 100)).toPrecision(2));
    name();
  });
  field.addEventListener("input", show);
  show();
}
